// Chooses the events to subscribe to, and lists the problems of old runtimes.
#include "manager/runtime/nri/nri_version.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "api/proto/nri/v1alpha1/nri.pb.h"

namespace qrm::manager {
namespace {

namespace nri = ::nri::pkg::api::v1alpha1;

using Version = std::array<int, 3>;

/// "v1.7.24~ds1" is {1, 7, 24}; parts that cannot be read are 0.
Version ParseVersion(const std::string& text) {
  Version version{};
  const char* at = text.c_str();
  if (*at == 'v') {
    ++at;
  }
  for (int& part : version) {
    char* end = nullptr;
    part = static_cast<int>(std::clamp(std::strtol(at, &end, 10), 0L, 1000000L));
    if (end == at || *end != '.') {
      break;
    }
    at = end + 1;
  }
  return version;
}

constexpr int32_t Bit(nri::Event event) {
  return 1 << (event - 1);
}

}  // namespace

int32_t SubscribedEvents() {
  // Every event costs the whole node a round trip, so subscribe only to events that change what
  // qrmd tracks. Updates of pods do not: their values come with each of their containers.
  return Bit(nri::RUN_POD_SANDBOX) | Bit(nri::STOP_POD_SANDBOX) | Bit(nri::REMOVE_POD_SANDBOX) |
         Bit(nri::CREATE_CONTAINER) | Bit(nri::START_CONTAINER) | Bit(nri::POST_START_CONTAINER) |
         Bit(nri::UPDATE_CONTAINER) | Bit(nri::STOP_CONTAINER) | Bit(nri::REMOVE_CONTAINER);
}

std::string KnownProblemOf(const RuntimeInfo& runtime) {
  if (runtime.name == "containerd" && ParseVersion(runtime.version) < Version{1, 7, 16}) {
    return fmt::format(
        "containerd {} can deadlock when an NRI plugin registers; upgrade to 1.7.16 or later",
        runtime.version);
  }
  return {};
}

}  // namespace qrm::manager
