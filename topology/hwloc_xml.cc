// One walk over the tree that pugixml parsed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <pugixml.hpp>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "topology/machine_objects.h"

namespace qrm {
namespace {

using Type = MachineObject::Type;

/// Real trees are less than half as deep.
constexpr int kMaxDepth = 256;

std::string_view Get(const pugi::xml_node& tag, const char* attribute) {
  return tag.attribute(attribute).value();
}

std::string_view NameOf(const pugi::xml_node& tag) {
  return tag.name();
}

Status Broken(std::string_view what, std::ptrdiff_t position) {
  return Errorf(StatusCode::kInvalidArgument, "{} at byte {}", what, position);
}

/// What keeps pugixml from reading `xml`.
Status ParseError(const pugi::xml_parse_result& result, std::string_view xml) {
  const auto at = static_cast<std::size_t>(result.offset);
  switch (result.status) {
    case pugi::status_unrecognized_tag:
      return Broken("a tag has no name", result.offset);
    case pugi::status_bad_attribute: {
      const bool in_value = at > 0 && xml.substr(at - 1, 1) == "\"";
      return Broken(in_value && xml.find('"', at) == std::string_view::npos
                        ? "a value does not end"
                        : "an attribute has no value in double quotes",
                    result.offset);
    }
    case pugi::status_bad_end_element:
      return Broken("a tag is closed that is not open", result.offset);
    case pugi::status_end_element_mismatch:
      return Broken(
          at + 1 >= xml.size() ? "the machine does not end" : "a tag is closed that is not open",
          result.offset);
    case pugi::status_no_document_element:
      return Broken("the outermost tag is not topology", result.offset);
    case pugi::status_out_of_memory:
      return Broken("there is too little memory for the text", result.offset);
    default:
      return Broken("a tag does not end", result.offset);
  }
}

uint64_t NumberOr0(std::string_view text) {
  return ParseNumber<uint64_t>(text).value_or(0);
}

/// hwloc's bitmap form: 32-bit words in hexadecimal, the most significant first, "" for zero.
/// "0xf...f" stands for all that follows without end and adds nothing here.
template <typename Set>
Set BitmapOf(std::string_view text) {
  constexpr int kWordBits = 32;
  Set set;
  for (int base = 0; base < IdSet::kMaxIds && !text.empty(); base += kWordBits) {
    const std::size_t comma = text.rfind(',');
    std::string_view word = comma == std::string_view::npos ? text : text.substr(comma + 1);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(0, comma);
    if (word.substr(0, 2) == "0x") {
      word.remove_prefix(2);
    }
    const uint32_t bits = ParseNumber<uint32_t>(word, 16).value_or(0);
    for (int bit = 0; bit < kWordBits; ++bit) {
      if (((bits >> static_cast<unsigned>(bit)) & 1U) != 0) {
        set.Add(base + bit);
      }
    }
  }
  return set;
}

/// Names come from outside; what is not printable would not survive terminals and JSON.
std::string Printable(std::string_view name) {
  constexpr std::size_t kMaxLength = 255;
  std::string text(name.substr(0, kMaxLength));
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

/// "0200 [8086:1521] ..." with the bus id "0000:01:00.0".
PciDevice PciOf(const pugi::xml_node& tag) {
  PciDevice pci{.address = Printable(Get(tag, "pci_busid"))};
  const std::string_view type = Get(tag, "pci_type");
  if (type.size() >= 16) {
    pci.device_class = ParseNumber<uint32_t>(type.substr(0, 4), 16).value_or(0);
    pci.vendor = ParseNumber<uint16_t>(type.substr(6, 4), 16).value_or(0);
    pci.device = ParseNumber<uint16_t>(type.substr(11, 4), 16).value_or(0);
  }
  return pci;
}

class XmlReader {
 public:
  /// `topology` is the outermost tag.
  StatusOr<MachineObjects> Read(const pugi::xml_node& topology) {
    QRM_RETURN_IF_ERROR(ReadVersion(topology));
    QRM_RETURN_IF_ERROR(ReadChildren(topology, kNone, 1));
    if (described_.objects.empty()) {
      return Broken("the machine does not end", topology.offset_debug());
    }
    return std::move(described_);
  }

 private:
  static constexpr int kNone = -1;

  /// The tags within `tag`, which is object `parent` or within it.
  Status ReadChildren(const pugi::xml_node& tag, int parent, int depth) {
    for (const pugi::xml_node& child : tag.children()) {
      if (child.type() == pugi::node_element) {
        QRM_RETURN_IF_ERROR(ReadTag(child, parent, depth));
      }
    }
    return OkStatus();
  }

  Status ReadTag(const pugi::xml_node& tag, int parent, int depth) {
    if (depth >= kMaxDepth) {
      return Broken("tags are nested too deep", tag.offset_debug());
    }
    int inner = parent;
    if (NameOf(tag) == "object") {
      QRM_ASSIGN_OR_RETURN(inner, AddObject(tag, parent));
      ReadDetails(tag, described_.objects[static_cast<std::size_t>(inner)]);
    } else if (NameOf(tag) == "distances2") {
      ReadDistances(tag);
    } else if (NameOf(tag) == "cpukind") {
      described_.kinds.push_back({.cpus = BitmapOf<CpuSet>(Get(tag, "cpuset")),
                                  .rank = static_cast<int>(described_.kinds.size())});
    }
    return ReadChildren(tag, inner, depth + 1);
  }

  void ReadDistances(const pugi::xml_node& tag) {
    if (Get(tag, "name") != "NUMALatency" || !described_.distances.empty()) {
      return;
    }
    for (const pugi::xml_node& indexes : tag.children("indexes")) {
      ReadNumbers(indexes.child_value(), [this](uint64_t number) {
        described_.distance_nodes.push_back(number < IdSet::kMaxIds ? static_cast<int>(number)
                                                                    : -1);
      });
    }
    for (const pugi::xml_node& values : tag.children("u64values")) {
      ReadNumbers(values.child_value(),
                  [this](uint64_t number) { described_.distances.push_back(number); });
    }
  }

  template <typename Add>
  static void ReadNumbers(std::string_view text, Add add) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of(" \t\r\n"), text.size());
      if (const auto number = ParseNumber<uint64_t>(text.substr(0, end)); number.has_value()) {
        add(*number);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  /// Format 1 has no version.
  Status ReadVersion(const pugi::xml_node& topology) {
    const std::string_view version = Get(topology, "version");
    if (!version.empty() && version.substr(0, 2) != "2." && version.substr(0, 2) != "3.") {
      return Broken("the format is none of 1, 2 and 3", topology.offset_debug());
    }
    format3_ = version.substr(0, 2) == "3.";
    return OkStatus();
  }

  StatusOr<int> AddObject(const pugi::xml_node& tag, int parent) {
    MachineObject object{.type = TypeOf(tag), .parent = parent};
    if (object.parent < 0 && !described_.objects.empty()) {
      return Broken("there are two machines", tag.offset_debug());
    }
    if (const auto number = ParseNumber<uint64_t>(Get(tag, "os_index"));
        number.has_value() && *number < IdSet::kMaxIds) {
      object.os_index = static_cast<int>(*number);
    }
    object.cpus = BitmapOf<CpuSet>(Get(tag, "cpuset"));
    object.nodes = BitmapOf<NumaMask>(Get(tag, "nodeset"));
    object.memory_bytes = NumberOr0(Get(tag, "local_memory"));
    object.name = Printable(Get(tag, "name"));
    if (object.type == Type::kPciDevice) {
      object.pci = PciOf(tag);
    }
    if (object.parent < 0) {
      ReadRoot(tag, object);
    }
    described_.objects.push_back(std::move(object));
    return static_cast<int>(described_.objects.size()) - 1;
  }

  void ReadRoot(const pugi::xml_node& tag, const MachineObject& root) {
    const auto or_all = [&tag](const char* key, const char* all) {
      return Get(tag, key).empty() ? Get(tag, all) : Get(tag, key);
    };
    described_.online = root.cpus;
    described_.complete = BitmapOf<CpuSet>(or_all("complete_cpuset", "cpuset"));
    described_.allowed = BitmapOf<CpuSet>(or_all("allowed_cpuset", "cpuset"));
    described_.allowed_nodes = BitmapOf<NumaMask>(or_all("allowed_nodeset", "nodeset"));
  }

  Type TypeOf(const pugi::xml_node& tag) const {
    const std::string_view name = Get(tag, "type");
    if (name == "Package" || name == "Socket") {
      return Type::kPackage;
    }
    if (name == "NUMANode") {
      return Type::kNumaNode;
    }
    if (name == "L3Cache" || (name == "Cache" && Get(tag, "depth") == "3")) {
      return Type::kL3;
    }
    if (name == "Core") {
      return Type::kCore;
    }
    if (name == "PU") {
      return Type::kPu;
    }
    if (name == "PCIDev") {
      return Type::kPciDevice;
    }
    return name == "OSDev" && IsNetwork(Get(tag, "osdev_type")) ? Type::kNetwork : Type::kOther;
  }

  /// Format 3 has a bit per role, 16 for network and 32 for InfiniBand; before, network was 2.
  bool IsNetwork(std::string_view osdev_type) const {
    constexpr uint64_t kNetworkBit = 16;
    constexpr uint64_t kInfiniBandBit = 32;
    constexpr uint64_t kNetwork = 2;
    const uint64_t type = NumberOr0(osdev_type);
    return format3_ ? (type & kNetworkBit) != 0 && (type & kInfiniBandBit) == 0 : type == kNetwork;
  }

  static void ReadDetails(const pugi::xml_node& tag, MachineObject& object) {
    bool is_dax = false;
    std::string_view dax_type;
    for (const pugi::xml_node& info : tag.children("info")) {
      is_dax |= Get(info, "name") == "DAXDevice";
      dax_type = Get(info, "name") == "DAXType" ? Get(info, "value") : dax_type;
    }
    object.memory_kind = MemoryKindOf(Get(tag, "subtype"), is_dax, dax_type);
    bool ordinary = true;  // the first entry is the ordinary page size, the rest are hugepages
    for (const pugi::xml_node& pages : tag.children("page_type")) {
      if (!std::exchange(ordinary, false)) {
        object.hugepages[NumberOr0(Get(pages, "size"))] = NumberOr0(Get(pages, "count"));
      }
    }
  }

  MachineObjects described_;
  bool format3_ = false;
};

}  // namespace

StatusOr<MachineObjects> ReadXml(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(xml.data(), xml.size(), pugi::parse_escapes, pugi::encoding_utf8);
  if (!parsed) {
    return ParseError(parsed, xml);
  }
  const pugi::xml_node topology = document.document_element();
  if (NameOf(topology) != "topology" || topology.next_sibling()) {
    return Broken("the outermost tag is not topology", topology.offset_debug());
  }
  return XmlReader().Read(topology);
}

}  // namespace qrm
