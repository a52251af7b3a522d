// One pass over the tags with a stack of open ones.
#include "topology/hwloc_xml.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/base/number.h"
#include "topology/xml_tags.h"

namespace qrm {
namespace {

using Type = MachineObject::Type;

/// Real trees are less than half as deep.
constexpr std::size_t kMaxDepth = 256;

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
  std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

/// "0200 [8086:1521] ..." with the bus id "0000:01:00.0".
PciDevice PciOf(const XmlTag& tag) {
  PciDevice pci{.address = Printable(tag.Get("pci_busid"))};
  const std::string_view type = tag.Get("pci_type");
  if (type.size() >= 16) {
    pci.device_class = ParseNumber<uint32_t>(type.substr(0, 4), 16).value_or(0);
    pci.vendor = ParseNumber<uint16_t>(type.substr(6, 4), 16).value_or(0);
    pci.device = ParseNumber<uint16_t>(type.substr(11, 4), 16).value_or(0);
  }
  return pci;
}

class XmlReader {
 public:
  explicit XmlReader(std::string_view xml) : tags_(xml) {}

  StatusOr<MachineObjects> Read() {
    while (true) {
      QRM_ASSIGN_OR_RETURN(const XmlTag tag, tags_.Next());
      switch (tag.kind) {
        case XmlTag::Kind::kEnd:
          return Finish();
        case XmlTag::Kind::kClose:
          QRM_RETURN_IF_ERROR(Close(tag));
          break;
        case XmlTag::Kind::kOpen:
        case XmlTag::Kind::kEmpty:
          QRM_RETURN_IF_ERROR(Open(tag));
          break;
      }
    }
  }

 private:
  /// A tag that is not closed yet, and its object if it is one.
  struct OpenTag {
    std::string name;
    int object = -1;
  };

  Status Broken(std::string_view what) const {
    return Errorf(StatusCode::kInvalidArgument, "{} at byte {}", what, tags_.position());
  }

  int CurrentObject() const {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->object >= 0) {
        return open->object;
      }
    }
    return -1;
  }

  Status Open(const XmlTag& tag) {
    if (open_.empty() && (tag.name != "topology" || started_)) {
      return Broken("the outermost tag is not topology");
    }
    if (open_.size() >= kMaxDepth) {
      return Broken("tags are nested too deep");
    }
    started_ = true;
    OpenTag open{.name = tag.name};
    if (tag.name == "topology") {
      QRM_RETURN_IF_ERROR(ReadVersion(tag.Get("version")));
    } else if (tag.name == "object") {
      QRM_ASSIGN_OR_RETURN(open.object, AddObject(tag));
    } else if (tag.name == "page_type" || tag.name == "info") {
      ReadDetail(tag);
    } else if (tag.name == "distances2") {
      in_latency_ = tag.Get("name") == "NUMALatency" && described_.distances.empty();
    } else if (tag.name == "cpukind") {
      described_.kinds.push_back({.cpus = BitmapOf<CpuSet>(tag.Get("cpuset")),
                                  .rank = static_cast<int>(described_.kinds.size())});
    }
    if (tag.kind == XmlTag::Kind::kOpen) {
      open_.push_back(std::move(open));
    }
    return OkStatus();
  }

  Status Close(const XmlTag& tag) {
    if (open_.empty() || open_.back().name != tag.name) {
      return Broken("a tag is closed that is not open");
    }
    if (in_latency_ && tag.name == "indexes") {
      ReadNumbers(tag.text_before, [this](uint64_t number) {
        described_.distance_nodes.push_back(number < IdSet::kMaxIds ? static_cast<int>(number)
                                                                    : -1);
      });
    } else if (in_latency_ && tag.name == "u64values") {
      ReadNumbers(tag.text_before,
                  [this](uint64_t number) { described_.distances.push_back(number); });
    } else if (tag.name == "distances2") {
      in_latency_ = false;
    }
    open_.pop_back();
    return OkStatus();
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
  Status ReadVersion(std::string_view version) {
    if (!version.empty() && version.substr(0, 2) != "2." && version.substr(0, 2) != "3.") {
      return Broken("the format is none of 1, 2 and 3");
    }
    format3_ = version.substr(0, 2) == "3.";
    return OkStatus();
  }

  StatusOr<int> AddObject(const XmlTag& tag) {
    MachineObject object{.type = TypeOf(tag), .parent = CurrentObject()};
    if (object.parent < 0 && !described_.objects.empty()) {
      return Broken("there are two machines");
    }
    if (const auto number = ParseNumber<uint64_t>(tag.Get("os_index"));
        number.has_value() && *number < IdSet::kMaxIds) {
      object.os_index = static_cast<int>(*number);
    }
    object.cpus = BitmapOf<CpuSet>(tag.Get("cpuset"));
    object.nodes = BitmapOf<NumaMask>(tag.Get("nodeset"));
    object.memory_bytes = NumberOr0(tag.Get("local_memory"));
    object.special_memory = !tag.Get("subtype").empty() && tag.Get("subtype") != "DRAM";
    object.name = Printable(tag.Get("name"));
    if (object.type == Type::kPciDevice) {
      object.pci = PciOf(tag);
    }
    if (object.parent < 0) {
      ReadRoot(tag, object);
    }
    described_.objects.push_back(std::move(object));
    return static_cast<int>(described_.objects.size()) - 1;
  }

  void ReadRoot(const XmlTag& tag, const MachineObject& root) {
    const auto or_all = [&tag](const char* key, std::string_view all) {
      return tag.Get(key).empty() ? all : tag.Get(key);
    };
    described_.online = root.cpus;
    described_.complete = BitmapOf<CpuSet>(or_all("complete_cpuset", tag.Get("cpuset")));
    described_.allowed = BitmapOf<CpuSet>(or_all("allowed_cpuset", tag.Get("cpuset")));
    described_.allowed_nodes = BitmapOf<NumaMask>(or_all("allowed_nodeset", tag.Get("nodeset")));
  }

  Type TypeOf(const XmlTag& tag) const {
    const std::string_view name = tag.Get("type");
    if (name == "Package" || name == "Socket") {
      return Type::kPackage;
    }
    if (name == "NUMANode") {
      return Type::kNumaNode;
    }
    if (name == "L3Cache" || (name == "Cache" && tag.Get("depth") == "3")) {
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
    return name == "OSDev" && IsNetwork(tag.Get("osdev_type")) ? Type::kNetwork : Type::kOther;
  }

  /// Format 3 has a bit per role, 16 for network and 32 for InfiniBand; before, network was 2.
  bool IsNetwork(std::string_view osdev_type) const {
    constexpr uint64_t kNetworkBit = 16;
    constexpr uint64_t kInfiniBandBit = 32;
    constexpr uint64_t kNetwork = 2;
    const uint64_t type = NumberOr0(osdev_type);
    return format3_ ? (type & kNetworkBit) != 0 && (type & kInfiniBandBit) == 0 : type == kNetwork;
  }

  void ReadDetail(const XmlTag& tag) {
    const int current = CurrentObject();
    if (current < 0 || open_.back().object != current) {
      return;
    }
    MachineObject& object = described_.objects[static_cast<std::size_t>(current)];
    if (tag.name == "info") {
      object.special_memory |= tag.Get("name") == "DAXDevice";
      return;
    }
    // The first entry is the ordinary page size, the rest are hugepages.
    if (current == pages_of_) {
      object.hugepages[NumberOr0(tag.Get("size"))] = NumberOr0(tag.Get("count"));
    }
    pages_of_ = current;
  }

  StatusOr<MachineObjects> Finish() {
    if (!open_.empty() || described_.objects.empty()) {
      return Broken("the machine does not end");
    }
    return std::move(described_);
  }

  XmlTags tags_;
  MachineObjects described_;
  std::vector<OpenTag> open_;
  bool started_ = false;
  bool format3_ = false;
  bool in_latency_ = false;
  int pages_of_ = -1;  // the object whose first page type was read
};

}  // namespace

StatusOr<MachineObjects> ReadXml(std::string_view xml) {
  return XmlReader(xml).Read();
}

}  // namespace qrm
