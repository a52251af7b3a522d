// Rewrites two attributes; everything else passes through untouched.
#include "topology/hwloc_xml.h"

#include <charconv>
#include <cstddef>

namespace qrm {
namespace {

constexpr std::string_view kFormat3 = "<topology version=\"3.";
constexpr std::string_view kOsDevType = "osdev_type=\"";

/// Format 3 has a bit per role of a device, format 2 one role. A port that is both network and
/// InfiniBand is named by the latter, as hwloc 2 does.
int OsDevTypeOfFormat2(unsigned roles) {
  struct Pair {
    unsigned bit;
    int type;
  };
  // hwloc 3 bit -> hwloc 2 enumerator: OpenFabrics, network, GPU, co-processor, DMA, memory and
  // storage (both "block").
  constexpr Pair kPairs[] = {{32, 3}, {16, 2}, {4, 1}, {8, 5}, {64, 4}, {2, 0}, {1, 0}};
  for (const Pair& pair : kPairs) {
    if ((roles & pair.bit) != 0) {
      return pair.type;
    }
  }
  return 0;
}

}  // namespace

std::string AsXmlFormat2(std::string_view xml) {
  const std::size_t version = xml.find(kFormat3);
  if (version == std::string_view::npos) {
    return std::string(xml);
  }
  std::string text(xml.substr(0, version));
  text += "<topology version=\"2.";
  std::size_t done = version + kFormat3.size();
  for (std::size_t at = xml.find(kOsDevType, done); at != std::string_view::npos;
       at = xml.find(kOsDevType, done)) {
    const std::size_t number = at + kOsDevType.size();
    unsigned roles = 0;
    const auto [stop, error] = std::from_chars(xml.data() + number, xml.data() + xml.size(), roles);
    text += xml.substr(done, number - done);
    done = number;
    if (error == std::errc()) {
      text += std::to_string(OsDevTypeOfFormat2(roles));
      done = static_cast<std::size_t>(stop - xml.data());
    }
  }
  text += xml.substr(done);
  return text;
}

}  // namespace qrm
