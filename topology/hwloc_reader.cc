// Walks hwloc's objects. What a PU has no object for (core, package, NUMA node) gets a stand-in.
#include "topology/hwloc_reader.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hwloc.h>

#include <fmt/format.h>

namespace qrm {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

bool IsId(unsigned index) {
  return index < static_cast<unsigned>(IdSet::kMaxIds);
}

template <typename Set>
Set SetOf(hwloc_const_bitmap_t bitmap) {
  Set set;
  for (int id = hwloc_bitmap_first(bitmap); id >= 0 && id < IdSet::kMaxIds;
       id = hwloc_bitmap_next(bitmap, id)) {
    set.Add(id);
  }
  return set;
}

hwloc_obj_t Ancestor(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t object) {
  return hwloc_get_ancestor_obj_by_type(topology, type, object);
}

std::string PciAddress(const hwloc_obj& device) {
  const auto& pci = device.attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

/// A node as hwloc sees it: memory close to `local`; several nodes may be close to the same CPUs.
struct LocalNode {
  int id = 0;
  CpuSet local;
  std::optional<int> package;  ///< absent when it is close to several packages or none
  bool special = false;  ///< high-bandwidth, non-volatile or device memory: never a CPU's own node
};

class Reader {
 public:
  Reader(hwloc_topology_t topology, MachineSource::OutsideCpuset outside_cpuset)
      : topology_(topology), keep_all_(outside_cpuset == MachineSource::OutsideCpuset::kKeep) {}

  StatusOr<MachineParts> Read() {
    ReadCpuSets();
    if (usable_.Empty()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot use the machine: no online CPU below number {} is allowed to this "
                    "process; describe it with all its CPUs",
                    IdSet::kMaxIds);
    }
    NumberPackages();
    ReadNodes();
    ReadCpus();
    PlaceNodesInPackages();
    CountL3sWithoutCpus();
    ReadCoreKinds();
    ReadDistances();
    ReadDevices();
    return std::move(parts_);
  }

 private:
  void Warn(std::string sentence) { parts_.warnings.push_back(std::move(sentence)); }

  void ReadCpuSets();
  void NumberPackages();
  void ReadNodes();
  void AddNode(hwloc_obj_t object);
  void ReadCpus();
  Cpu ReadCpu(hwloc_obj_t pu);
  std::optional<int> NodeOf(int cpu) const;
  void PlaceNodesInPackages();
  void CountL3sWithoutCpus();
  void ReadCoreKinds();
  void ReadDistances();
  void TakeDistances(const hwloc_distances_s& matrix);
  void ReadDevices();
  std::optional<int> NodeOfDevice(hwloc_obj_t device) const;
  int NumberOf(const hwloc_obj& package) const {
    return static_cast<int>(packages_by_kernel_ ? package.os_index : package.logical_index);
  }
  /// The smallest usable CPU of `object`, or -1.
  int SmallestCpu(const hwloc_obj& object) const {
    return (SetOf<CpuSet>(object.cpuset) & usable_).First();
  }

  hwloc_topology_t topology_;
  const bool keep_all_;
  MachineParts parts_;
  CpuSet usable_;
  std::vector<LocalNode> local_nodes_;
  bool packages_by_kernel_ = true;
  int cpus_without_core_ = 0;
  int cpus_without_package_ = 0;
  CpuSet cpus_without_node_;
};

void Reader::ReadCpuSets() {
  const auto online = SetOf<CpuSet>(hwloc_topology_get_topology_cpuset(topology_));
  const auto allowed = SetOf<CpuSet>(hwloc_topology_get_allowed_cpuset(topology_));
  parts_.offline = SetOf<CpuSet>(hwloc_topology_get_complete_cpuset(topology_)) - online;
  parts_.disallowed = online - allowed;
  usable_ = keep_all_ ? online : online & allowed;
  if (const int last = hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(topology_));
      last >= IdSet::kMaxIds) {
    Warn(fmt::format("CPUs from number {} on are left out", IdSet::kMaxIds));
  }
}

void Reader::NumberPackages() {
  std::set<unsigned> seen;
  hwloc_obj_t package = nullptr;
  while ((package = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_PACKAGE, package)) != nullptr) {
    packages_by_kernel_ &= IsId(package->os_index) && seen.insert(package->os_index).second;
  }
  if (!packages_by_kernel_) {
    Warn("package numbers are missing or not unique; packages are numbered in order");
  }
}

void Reader::ReadNodes() {
  const hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_nodeset(topology_);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (!IsId(node->os_index)) {
      Warn("a NUMA node without a usable number is left out");
    } else if (keep_all_ || hwloc_bitmap_isset(allowed, node->os_index) != 0) {
      AddNode(node);
    }
  }
  if (parts_.nodes.empty()) {
    Warn("no usable NUMA node is described; all CPUs are counted as node 0, of no memory");
    parts_.nodes.push_back({.id = 0});
    local_nodes_.push_back({.id = 0, .local = usable_});
  }
  std::sort(local_nodes_.begin(), local_nodes_.end(),
            [](const LocalNode& a, const LocalNode& b) { return a.id < b.id; });
}

void Reader::AddNode(hwloc_obj_t object) {
  const hwloc_obj& node = *object;
  const auto& memory = node.attr->numanode;
  NumaNode read{.id = static_cast<int>(node.os_index), .memory_bytes = memory.local_memory};
  if (std::any_of(parts_.nodes.begin(), parts_.nodes.end(),
                  [&read](const NumaNode& known) { return known.id == read.id; })) {
    Warn(fmt::format("NUMA node {} is described twice; the second is left out", read.id));
    return;
  }
  // The first entry is the ordinary page size, the rest are hugepages.
  for (unsigned i = 1; i < memory.page_types_len; ++i) {
    read.hugepages[memory.page_types[i].size] = memory.page_types[i].count;
  }
  const bool special = hwloc_obj_get_info_by_name(object, "DAXDevice") != nullptr ||
                       (node.subtype != nullptr && std::string_view(node.subtype) != "DRAM");
  LocalNode local{.id = read.id, .local = SetOf<CpuSet>(node.cpuset) & usable_, .special = special};
  if (const hwloc_obj_t package = Ancestor(topology_, HWLOC_OBJ_PACKAGE, object);
      package != nullptr) {
    local.package = NumberOf(*package);
  }
  local_nodes_.push_back(std::move(local));
  parts_.nodes.push_back(std::move(read));
}

void Reader::ReadCpus() {
  hwloc_obj_t pu = nullptr;
  while ((pu = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_PU, pu)) != nullptr) {
    if (IsId(pu->os_index) && usable_.Has(static_cast<int>(pu->os_index))) {
      parts_.cpus.push_back(ReadCpu(pu));
    }
  }
  if (cpus_without_core_ > 0) {
    Warn(fmt::format("{} CPUs have no core; each is counted as its own", cpus_without_core_));
  }
  if (cpus_without_package_ > 0) {
    Warn(fmt::format("{} CPUs have no package; they are counted as package 0",
                     cpus_without_package_));
  }
  if (!cpus_without_node_.Empty()) {
    Warn(fmt::format("CPUs {} have no usable NUMA node of their own; they are counted with node {}",
                     ToString(cpus_without_node_), local_nodes_.front().id));
  }
  if (std::none_of(parts_.cpus.begin(), parts_.cpus.end(),
                   [](const Cpu& cpu) { return cpu.has_l3; })) {
    Warn("no L3 cache is described; aligning by L3 means aligning by package");
  }
}

Cpu Reader::ReadCpu(hwloc_obj_t pu) {
  Cpu cpu{.id = static_cast<int>(pu->os_index)};
  cpu.core = cpu.id;
  if (const hwloc_obj_t core = Ancestor(topology_, HWLOC_OBJ_CORE, pu); core != nullptr) {
    cpu.core = SmallestCpu(*core);
  } else {
    ++cpus_without_core_;
  }
  cpu.l3 = usable_.First();
  if (const hwloc_obj_t package = Ancestor(topology_, HWLOC_OBJ_PACKAGE, pu); package != nullptr) {
    cpu.package = NumberOf(*package);
    cpu.l3 = SmallestCpu(*package);
  } else {
    ++cpus_without_package_;
  }
  const hwloc_obj_t l3 = Ancestor(topology_, HWLOC_OBJ_L3CACHE, pu);
  cpu.has_l3 = l3 != nullptr;
  if (cpu.has_l3) {
    cpu.l3 = SmallestCpu(*l3);
  }
  if (const std::optional<int> node = NodeOf(cpu.id); node.has_value()) {
    cpu.node = *node;
  } else {
    cpu.node = local_nodes_.front().id;
    cpus_without_node_.Add(cpu.id);
  }
  return cpu;
}

/// The node whose local CPUs are fewest; among equals ordinary memory, then the lowest number,
/// because memory that is added to a node is numbered after it.
std::optional<int> Reader::NodeOf(int cpu) const {
  const LocalNode* best = nullptr;
  for (const LocalNode& node : local_nodes_) {
    if (!node.local.Has(cpu)) {
      continue;
    }
    const auto rank = [](const LocalNode& n) { return std::pair(n.special, n.local.Count()); };
    if (best == nullptr || rank(node) < rank(*best)) {
      best = &node;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(best->id);
}

/// Its package, or that of the first CPU near it when it is close to several packages.
void Reader::PlaceNodesInPackages() {
  for (NumaNode& node : parts_.nodes) {
    const auto local = std::find_if(local_nodes_.begin(), local_nodes_.end(),
                                    [&node](const LocalNode& n) { return n.id == node.id; });
    const int near = local->local.Empty() ? usable_.First() : local->local.First();
    const auto cpu = std::find_if(parts_.cpus.begin(), parts_.cpus.end(),
                                  [near](const Cpu& c) { return c.id == near; });
    node.package = local->package.value_or(cpu == parts_.cpus.end() ? 0 : cpu->package);
  }
}

/// A cache whose CPUs are all out of reach still exists where its memory is not.
void Reader::CountL3sWithoutCpus() {
  hwloc_obj_t l3 = nullptr;
  while ((l3 = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_L3CACHE, l3)) != nullptr) {
    const auto near = SetOf<NumaMask>(l3->nodeset);
    const bool has_node = std::any_of(parts_.nodes.begin(), parts_.nodes.end(),
                                      [&near](const NumaNode& node) { return near.Has(node.id); });
    if (SmallestCpu(*l3) < 0 && has_node) {
      ++parts_.l3s_without_cpus;
    }
  }
}

void Reader::ReadCoreKinds() {
  const int kinds = hwloc_cpukinds_get_nr(topology_, 0);
  if (kinds < 2) {
    return;
  }
  for (int kind = 0; kind < kinds; ++kind) {
    const Bitmap members(hwloc_bitmap_alloc());
    int efficiency = -1;
    if (hwloc_cpukinds_get_info(topology_, static_cast<unsigned>(kind), members.get(), &efficiency,
                                nullptr, nullptr, 0) != 0 ||
        efficiency < 0) {
      Warn("several kinds of cores are described but not ranked; all are counted as one kind");
      for (Cpu& cpu : parts_.cpus) {
        cpu.core_kind = 0;
      }
      return;
    }
    for (Cpu& cpu : parts_.cpus) {
      if (hwloc_bitmap_isset(members.get(), static_cast<unsigned>(cpu.id)) != 0) {
        cpu.core_kind = efficiency;
      }
    }
  }
}

void Reader::ReadDistances() {
  unsigned count = 1;
  hwloc_distances_s* matrix = nullptr;
  if (hwloc_distances_get_by_name(topology_, "NUMALatency", &count, &matrix, 0) == 0 && count > 0) {
    TakeDistances(*matrix);
    hwloc_distances_release(topology_, matrix);
  }
  if (parts_.distances.empty() && parts_.nodes.size() > 1) {
    Warn("no complete distances between the NUMA nodes are described; other nodes count as 20");
  }
}

void Reader::TakeDistances(const hwloc_distances_s& matrix) {
  std::vector<unsigned> rows;
  for (const NumaNode& node : parts_.nodes) {
    for (unsigned row = 0; row < matrix.nbobjs; ++row) {
      const hwloc_obj_t object = matrix.objs[row];
      if (object != nullptr && object->type == HWLOC_OBJ_NUMANODE &&
          object->os_index == static_cast<unsigned>(node.id)) {
        rows.push_back(row);
        break;
      }
    }
  }
  if (rows.size() != parts_.nodes.size()) {
    return;
  }
  for (const unsigned from : rows) {
    std::vector<uint64_t> line;
    line.reserve(rows.size());
    for (const unsigned to : rows) {
      line.push_back(matrix.values[std::size_t{from} * matrix.nbobjs + to]);
    }
    parts_.distances.push_back(std::move(line));
  }
}

void Reader::ReadDevices() {
  hwloc_obj_t device = nullptr;
  while ((device = hwloc_get_next_pcidev(topology_, device)) != nullptr) {
    const auto& pci = device->attr->pcidev;
    parts_.pci_devices.push_back({.address = PciAddress(*device),
                                  .device_class = pci.class_id,
                                  .vendor = pci.vendor_id,
                                  .device = pci.device_id,
                                  .node = NodeOfDevice(device)});
  }
  while ((device = hwloc_get_next_osdev(topology_, device)) != nullptr) {
    if (device->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK || device->name == nullptr) {
      continue;
    }
    const hwloc_obj_t pci = Ancestor(topology_, HWLOC_OBJ_PCI_DEVICE, device);
    parts_.nics.push_back({.name = device->name,
                           .pci_address = pci == nullptr ? "" : PciAddress(*pci),
                           .node = NodeOfDevice(device)});
  }
}

/// The node of the CPUs near `device`; nothing when they are of several nodes or not known.
std::optional<int> Reader::NodeOfDevice(hwloc_obj_t device) const {
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology_, device);
  if (place == nullptr || place->cpuset == nullptr) {
    return std::nullopt;
  }
  std::optional<int> node;
  for (const Cpu& cpu : parts_.cpus) {
    if (hwloc_bitmap_isset(place->cpuset, static_cast<unsigned>(cpu.id)) == 0) {
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

StatusOr<MachineParts> ReadParts(hwloc_topology* topology,
                                 MachineSource::OutsideCpuset outside_cpuset) {
  return Reader(topology, outside_cpuset).Read();
}

}  // namespace qrm
