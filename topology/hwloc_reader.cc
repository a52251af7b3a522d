// Walks hwloc's tree, memory and I/O children included.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <hwloc.h>

#include <fmt/format.h>

#include "topology/machine_objects.h"

namespace qrm {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

template <typename Set>
Set SetOf(hwloc_const_bitmap_t bitmap) {
  Set set;
  for (int id = bitmap == nullptr ? -1 : hwloc_bitmap_first(bitmap); id >= 0 && id < IdSet::kMaxIds;
       id = hwloc_bitmap_next(bitmap, id)) {
    set.Add(id);
  }
  return set;
}

void ReadMemory(hwloc_obj_t object, MachineObject& node) {
  const auto& memory = object->attr->numanode;
  node.memory_bytes = memory.local_memory;
  // The first entry is the ordinary page size, the rest are hugepages.
  for (unsigned i = 1; i < memory.page_types_len; ++i) {
    node.hugepages[memory.page_types[i].size] = memory.page_types[i].count;
  }
  const char* const dax_type = hwloc_obj_get_info_by_name(object, "DAXType");
  node.memory_kind = MemoryKindOf(object->subtype == nullptr ? "" : object->subtype,
                                  hwloc_obj_get_info_by_name(object, "DAXDevice") != nullptr,
                                  dax_type == nullptr ? "" : dax_type);
}

void ReadPci(hwloc_obj_t object, PciDevice& device) {
  const auto& pci = object->attr->pcidev;
  device = {
      .address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func),
      .device_class = pci.class_id,
      .vendor = pci.vendor_id,
      .device = pci.device_id};
}

MachineObject Read(hwloc_obj_t object, int parent) {
  MachineObject read{.parent = parent};
  if (object->os_index < static_cast<unsigned>(IdSet::kMaxIds)) {
    read.os_index = static_cast<int>(object->os_index);
  }
  read.cpus = SetOf<CpuSet>(object->cpuset);
  read.nodes = SetOf<NumaMask>(object->nodeset);
  switch (object->type) {
    case HWLOC_OBJ_PACKAGE:
      read.type = MachineObject::Type::kPackage;
      break;
    case HWLOC_OBJ_NUMANODE:
      read.type = MachineObject::Type::kNumaNode;
      ReadMemory(object, read);
      break;
    case HWLOC_OBJ_L3CACHE:
      read.type = MachineObject::Type::kL3;
      break;
    case HWLOC_OBJ_CORE:
      read.type = MachineObject::Type::kCore;
      break;
    case HWLOC_OBJ_PU:
      read.type = MachineObject::Type::kPu;
      break;
    case HWLOC_OBJ_PCI_DEVICE:
      read.type = MachineObject::Type::kPciDevice;
      ReadPci(object, read.pci);
      break;
    case HWLOC_OBJ_OS_DEVICE:
      if (object->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && object->name != nullptr) {
        read.type = MachineObject::Type::kNetwork;
        read.name = object->name;
      }
      break;
    default:
      break;
  }
  return read;
}

void ReadTree(hwloc_topology_t topology, hwloc_obj_t object, int parent,
              std::vector<MachineObject>& objects) {
  const int position = static_cast<int>(objects.size());
  objects.push_back(Read(object, parent));
  hwloc_obj_t child = nullptr;
  while ((child = hwloc_get_next_child(topology, object, child)) != nullptr) {
    ReadTree(topology, child, position, objects);
  }
}

void ReadKinds(hwloc_topology_t topology, std::vector<CoreKind>& kinds) {
  const int count = hwloc_cpukinds_get_nr(topology, 0);
  for (int i = 0; i < count; ++i) {
    const Bitmap members(hwloc_bitmap_alloc());
    CoreKind& kind = kinds.emplace_back();
    if (hwloc_cpukinds_get_info(topology, static_cast<unsigned>(i), members.get(), &kind.rank,
                                nullptr, nullptr, 0) == 0) {
      kind.cpus = SetOf<CpuSet>(members.get());
    }
  }
}

void ReadDistances(hwloc_topology_t topology, MachineObjects& described) {
  unsigned count = 1;
  hwloc_distances_s* matrix = nullptr;
  if (hwloc_distances_get_by_name(topology, "NUMALatency", &count, &matrix, 0) != 0 || count == 0) {
    return;
  }
  for (unsigned i = 0; i < matrix->nbobjs; ++i) {
    const hwloc_obj_t node = matrix->objs[i];
    const bool known = node != nullptr && node->type == HWLOC_OBJ_NUMANODE &&
                       node->os_index < static_cast<unsigned>(IdSet::kMaxIds);
    described.distance_nodes.push_back(known ? static_cast<int>(node->os_index) : -1);
  }
  const std::size_t values = std::size_t{matrix->nbobjs} * matrix->nbobjs;
  described.distances.assign(matrix->values, matrix->values + values);
  hwloc_distances_release(topology, matrix);
}

}  // namespace

MachineObjects ReadObjects(hwloc_topology* topology) {
  MachineObjects described;
  ReadTree(topology, hwloc_get_root_obj(topology), -1, described.objects);
  described.online = SetOf<CpuSet>(hwloc_topology_get_topology_cpuset(topology));
  described.complete = SetOf<CpuSet>(hwloc_topology_get_complete_cpuset(topology));
  described.allowed = SetOf<CpuSet>(hwloc_topology_get_allowed_cpuset(topology));
  described.allowed_nodes = SetOf<NumaMask>(hwloc_topology_get_allowed_nodeset(topology));
  if (hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(topology)) >= IdSet::kMaxIds) {
    described.warnings.push_back(
        fmt::format("CPUs from number {} on are left out", IdSet::kMaxIds));
  }
  ReadKinds(topology, described.kinds);
  ReadDistances(topology, described);
  return described;
}

}  // namespace qrm
