// Sorts described objects and repairs mistakes of firmware, or of their author.
#include "topology/machine_objects.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm {
namespace {

using Type = MachineObject::Type;

class Builder {
 public:
  Builder(MachineObjects described, MachineSource::OutsideCpuset outside_cpuset)
      : described_(std::move(described)),
        keep_all_(outside_cpuset == MachineSource::OutsideCpuset::kKeep) {}

  StatusOr<MachineParts> Build() {
    parts_.warnings = std::move(described_.warnings);
    FindUsablePus();
    if (pus_.empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot use the machine: no online CPU below number {} is allowed to this "
                    "process; describe it with all its CPUs",
                    IdSet::kMaxIds);
    }
    NumberPackages();
    AddNodes();
    AddCpus();
    PlaceNodesInPackages();
    TellMemoryApart();
    CountL3sWithoutCpus();
    RankCores();
    AddDistances();
    AddDevices();
    return std::move(parts_);
  }

 private:
  void Warn(std::string sentence) { parts_.warnings.push_back(std::move(sentence)); }
  const MachineObject& At(int object) const {
    return described_.objects[static_cast<std::size_t>(object)];
  }
  /// The nearest object of `type` around `object`, or -1.
  int Around(int object, Type type) const {
    for (int up = At(object).parent; up >= 0; up = At(up).parent) {
      if (At(up).type == type) {
        return up;
      }
    }
    return -1;
  }
  /// The smallest usable CPU in `object`, or -1.
  int SmallestCpu(int object) const { return smallest_cpu_[static_cast<std::size_t>(object)]; }

  void FindUsablePus();
  void NumberPackages();
  void AddNodes();
  void AddCpus();
  Cpu CpuOf(int pu);
  std::optional<int> NodeOf(int cpu) const;
  void PlaceNodesInPackages();
  void TellMemoryApart();
  void CountL3sWithoutCpus();
  void RankCores();
  void AddDistances();
  void AddDevices();
  std::optional<int> NodeOfDevice(int device) const;

  MachineObjects described_;
  const bool keep_all_;
  MachineParts parts_;
  CpuSet usable_;
  std::vector<int> pus_;           // usable ones
  std::vector<int> smallest_cpu_;  // by object
  std::vector<int> package_id_;    // by object; 0 for objects that are not packages
  std::vector<int> node_objects_;  // of parts_.nodes, in the same order
  int cpus_without_core_ = 0;
  int cpus_without_package_ = 0;
  CpuSet cpus_without_node_;
};

void Builder::FindUsablePus() {
  const CpuSet wanted = keep_all_ ? described_.online : described_.online & described_.allowed;
  smallest_cpu_.assign(described_.objects.size(), -1);
  for (std::size_t i = 0; i < described_.objects.size(); ++i) {
    const MachineObject& pu = described_.objects[i];
    if (pu.type != Type::kPu || !wanted.Has(pu.os_index) || usable_.Has(pu.os_index)) {
      continue;
    }
    usable_.Add(pu.os_index);
    pus_.push_back(static_cast<int>(i));
    for (int up = static_cast<int>(i); up >= 0; up = At(up).parent) {
      int& smallest = smallest_cpu_[static_cast<std::size_t>(up)];
      smallest = smallest < 0 ? pu.os_index : std::min(smallest, pu.os_index);
    }
  }
  parts_.offline = described_.complete - described_.online;
  parts_.disallowed = described_.online - described_.allowed;
}

void Builder::NumberPackages() {
  std::set<int> seen;
  int count = 0;
  for (const MachineObject& object : described_.objects) {
    if (object.type == Type::kPackage) {
      seen.insert(object.os_index);
      ++count;
    }
  }
  const bool by_kernel = static_cast<int>(seen.size()) == count && seen.count(-1) == 0;
  if (!by_kernel) {
    Warn("package numbers are missing or not unique; packages are numbered in order");
  }
  int next = 0;
  for (const MachineObject& object : described_.objects) {
    const bool is_package = object.type == Type::kPackage;
    package_id_.push_back(is_package && by_kernel ? object.os_index : next);
    next += is_package ? 1 : 0;
  }
}

void Builder::AddNodes() {
  std::set<int> seen;
  for (std::size_t i = 0; i < described_.objects.size(); ++i) {
    const MachineObject& object = described_.objects[i];
    if (object.type != Type::kNumaNode) {
      continue;
    }
    if (object.os_index < 0 || seen.count(object.os_index) != 0) {
      Warn("a NUMA node without a number of its own is left out");
    } else if (keep_all_ || described_.allowed_nodes.Has(object.os_index)) {
      seen.insert(object.os_index);
      node_objects_.push_back(static_cast<int>(i));
      parts_.nodes.push_back({.id = object.os_index,
                              .memory_bytes = object.memory_bytes,
                              .memory_kind = object.memory_kind.value_or(MemoryKind::kDram),
                              .hugepages = object.hugepages});
    }
  }
  if (parts_.nodes.empty()) {
    Warn("no usable NUMA node is described; all CPUs are counted as node 0, of no memory");
    parts_.nodes.push_back({.id = 0});
  }
}

void Builder::AddCpus() {
  for (const int pu : pus_) {
    parts_.cpus.push_back(CpuOf(pu));
  }
  if (cpus_without_core_ > 0) {
    Warn(fmt::format("{} CPUs have no core; each is counted as its own", cpus_without_core_));
  }
  if (cpus_without_package_ > 0) {
    Warn(fmt::format("{} CPUs have no package; they are counted as package 0",
                     cpus_without_package_));
  }
  if (!cpus_without_node_.Empty() && !node_objects_.empty()) {
    Warn(fmt::format("CPUs {} have no usable NUMA node of their own; they are counted with node {}",
                     ToString(cpus_without_node_), parts_.nodes.front().id));
  }
  if (std::ranges::none_of(parts_.cpus, [](const Cpu& cpu) { return cpu.has_l3; })) {
    Warn("no L3 cache is described; aligning by L3 means aligning by package");
  }
}

Cpu Builder::CpuOf(int pu) {
  Cpu cpu{.id = At(pu).os_index};
  const int core = Around(pu, Type::kCore);
  cpu.core = core < 0 ? cpu.id : SmallestCpu(core);
  cpus_without_core_ += core < 0 ? 1 : 0;

  const int package = Around(pu, Type::kPackage);
  cpu.package = package < 0 ? 0 : package_id_[static_cast<std::size_t>(package)];
  cpus_without_package_ += package < 0 ? 1 : 0;

  const int l3 = Around(pu, Type::kL3);
  cpu.has_l3 = l3 >= 0;
  cpu.l3 = cpu.has_l3 ? SmallestCpu(l3) : package < 0 ? usable_.First() : SmallestCpu(package);

  const std::optional<int> node = NodeOf(cpu.id);
  cpu.node = node.value_or(parts_.nodes.front().id);
  if (!node.has_value()) {
    cpus_without_node_.Add(cpu.id);
  }
  return cpu;
}

/// The node whose local CPUs are fewest; among equals ordinary memory, then the lowest number,
/// because memory that is added to a node is numbered after it.
std::optional<int> Builder::NodeOf(int cpu) const {
  const MachineObject* best = nullptr;
  const auto rank = [](const MachineObject& node) {
    const bool special = node.memory_kind.value_or(MemoryKind::kDram) != MemoryKind::kDram;
    return std::tuple(special, node.cpus.Count(), node.os_index);
  };
  for (const int object : node_objects_) {
    const MachineObject& node = At(object);
    if (node.cpus.Has(cpu) && (best == nullptr || rank(node) < rank(*best))) {
      best = &node;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(best->os_index);
}

/// Its package, or that of the first CPU near it when it is close to several packages.
void Builder::PlaceNodesInPackages() {
  for (std::size_t i = 0; i < parts_.nodes.size(); ++i) {
    int near = usable_.First();
    if (i < node_objects_.size()) {
      if (const int package = Around(node_objects_[i], Type::kPackage); package >= 0) {
        parts_.nodes[i].package = package_id_[static_cast<std::size_t>(package)];
        continue;
      }
      const int local = (At(node_objects_[i]).cpus & usable_).First();
      near = local < 0 ? near : local;
    }
    const auto cpu =
        std::ranges::find_if(parts_.cpus, [near](const Cpu& c) { return c.id == near; });
    parts_.nodes[i].package = cpu->package;
  }
}

/// Memory without CPUs is near to the CPUs that hwloc counts as local to it.
void Builder::TellMemoryApart() {
  for (std::size_t i = 0; i < node_objects_.size(); ++i) {
    const MachineObject& object = At(node_objects_[i]);
    NumaNode& node = parts_.nodes[i];
    bool has_cpus = false;
    for (const Cpu& cpu : parts_.cpus) {
      has_cpus |= cpu.node == node.id;
      if (object.cpus.Has(cpu.id)) {
        node.homes.Add(cpu.node);
      }
    }
    if (!has_cpus && !object.memory_kind.has_value()) {
      node.memory_kind = MemoryKind::kCpuLess;
    }
  }
}

/// A cache whose CPUs are all out of reach still exists where its memory is not.
void Builder::CountL3sWithoutCpus() {
  for (std::size_t i = 0; i < described_.objects.size(); ++i) {
    const MachineObject& l3 = described_.objects[i];
    const bool has_node = std::ranges::any_of(
        parts_.nodes, [&l3](const NumaNode& node) { return l3.nodes.Has(node.id); });
    if (l3.type == Type::kL3 && smallest_cpu_[i] < 0 && has_node) {
      ++parts_.l3s_without_cpus;
    }
  }
}

void Builder::RankCores() {
  if (described_.kinds.size() < 2) {
    return;
  }
  if (std::ranges::any_of(described_.kinds, [](const CoreKind& kind) { return kind.rank < 0; })) {
    Warn("several kinds of cores are described but not ranked; all are counted as one kind");
    return;
  }
  for (const CoreKind& kind : described_.kinds) {
    for (Cpu& cpu : parts_.cpus) {
      if (kind.cpus.Has(cpu.id)) {
        cpu.core_kind = kind.rank;
      }
    }
  }
}

void Builder::AddDistances() {
  const std::vector<int>& rows = described_.distance_nodes;
  std::vector<std::size_t> row_of;
  for (const NumaNode& node : parts_.nodes) {
    const auto row = std::ranges::find(rows, node.id);
    if (row != rows.end()) {
      row_of.push_back(static_cast<std::size_t>(row - rows.begin()));
    }
  }
  const bool square = described_.distances.size() == rows.size() * rows.size();
  if (row_of.size() != parts_.nodes.size() || !square) {
    if (parts_.nodes.size() > 1) {
      Warn("no complete distances between the NUMA nodes are described; other nodes count as 20");
    }
    return;
  }
  for (const std::size_t from : row_of) {
    std::vector<uint64_t>& line = parts_.distances.emplace_back();
    for (const std::size_t to : row_of) {
      line.push_back(described_.distances[from * rows.size() + to]);
    }
  }
}

void Builder::AddDevices() {
  for (std::size_t i = 0; i < described_.objects.size(); ++i) {
    const MachineObject& object = described_.objects[i];
    const int device = static_cast<int>(i);
    if (object.type == Type::kPciDevice) {
      PciDevice pci = object.pci;
      pci.node = NodeOfDevice(device);
      parts_.pci_devices.push_back(std::move(pci));
    } else if (object.type == Type::kNetwork) {
      const int pci = Around(device, Type::kPciDevice);
      parts_.nics.push_back({.name = object.name,
                             .pci_address = pci < 0 ? "" : At(pci).pci.address,
                             .node = NodeOfDevice(device)});
    }
  }
}

/// The node of the CPUs near `device`; nothing when they are of several nodes or not known.
std::optional<int> Builder::NodeOfDevice(int device) const {
  int place = At(device).parent;
  while (place >= 0 && At(place).cpus.Empty()) {
    place = At(place).parent;
  }
  std::optional<int> node;
  for (const Cpu& cpu : parts_.cpus) {
    if (place < 0 || !At(place).cpus.Has(cpu.id)) {
      continue;
    }
    if (node.has_value() && *node != cpu.node) {
      return std::nullopt;
    }
    node = cpu.node;
  }
  return node;
}

}  // namespace

std::optional<MemoryKind> MemoryKindOf(std::string_view subtype, bool is_dax,
                                       std::string_view dax_type) {
  if (subtype.starts_with("CXL")) {
    return MemoryKind::kCxl;
  }
  if (subtype == "HBM" || subtype == "MCDRAM") {
    return MemoryKind::kHbm;
  }
  if (subtype == "NVM" || dax_type == "NVM") {
    return MemoryKind::kPmem;
  }
  if (subtype == "GPUMemory") {
    return MemoryKind::kGpu;
  }
  if (is_dax || (!subtype.empty() && subtype != "DRAM")) {
    return MemoryKind::kCpuLess;
  }
  return subtype.empty() ? std::nullopt : std::optional(MemoryKind::kDram);
}

StatusOr<MachineParts> PartsOf(MachineObjects described,
                               MachineSource::OutsideCpuset outside_cpuset) {
  return Builder(std::move(described), outside_cpuset).Build();
}

}  // namespace qrm
