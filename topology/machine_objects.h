// The objects that describe a machine, from a loaded hwloc topology or an XML export alike, and
// what reads them. XML is read without hwloc: its importer crashes on bad exports, and that of
// Debian 12 does not know format 3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "topology/discovery.h"
#include "topology/machine.h"

struct hwloc_topology;

namespace qrm {

/// One object of hwloc's tree. Units: the kernel's numbers, bytes.
/// Source: hwloc 2.9, "Object Types" and "Topology Attributes".
struct MachineObject {
  enum class Type { kPackage, kNumaNode, kL3, kCore, kPu, kPciDevice, kNetwork, kOther };

  Type type = Type::kOther;
  int parent = -1;    ///< position of the parent, before this one; -1 for the root
  int os_index = -1;  ///< the kernel's number; -1 when it has none below IdSet::kMaxIds
  CpuSet cpus;        ///< empty for devices
  NumaMask nodes;
  uint64_t memory_bytes = 0;               ///< NUMA nodes
  std::map<uint64_t, uint64_t> hugepages;  ///< NUMA nodes: size in bytes -> pages
  std::optional<MemoryKind> memory_kind;   ///< NUMA nodes, where hwloc knows it
  std::string name;                        ///< network interfaces
  PciDevice pci;                           ///< PCI devices
};

/// What hwloc says of a NUMA node's memory: the object's subtype, whether the memory is a DAX
/// device, and that device's type. Absent when it says nothing. Source: hwloc 2.9 and 2.11,
/// "Object Types", subtypes of NUMA nodes, and info DAXType.
std::optional<MemoryKind> MemoryKindOf(std::string_view subtype, bool is_dax,
                                       std::string_view dax_type);

/// Cores of one kind; a higher rank is more performant, -1 is not known.
/// Units: the kernel's CPU numbers. Source: hwloc 2.9, "Kinds of CPU cores".
struct CoreKind {
  CpuSet cpus;
  int rank = -1;
};

/// All that is read of a machine before it is put in order.
/// Units: the kernel's numbers, distances as in the SLIT. Source: hwloc 2.9, "Distances" and
/// "Kinds of CPU cores".
struct MachineObjects {
  std::vector<MachineObject> objects;  ///< parents before children, siblings in order
  CpuSet online;
  CpuSet complete;  ///< online and offline
  CpuSet allowed;
  NumaMask allowed_nodes;
  std::vector<CoreKind> kinds;
  std::vector<int> distance_nodes;  ///< node numbers of the rows of `distances`
  std::vector<uint64_t> distances;  ///< row by row; SLIT units
  std::vector<std::string> warnings;
};

/// The machine that `described` holds. What a CPU has no object for (core, package, NUMA node) gets
/// a stand-in, and a warning says so.
/// Errors: kInvalidArgument when no usable CPU is left.
/// Units: memory in bytes, distances as in the SLIT. Cost: O(objects x depth + nodes squared).
/// Source: hwloc 2.9, "Object Types" and "Topology Attributes".
StatusOr<MachineParts> PartsOf(MachineObjects described,
                               MachineSource::OutsideCpuset outside_cpuset);

/// The objects of `topology`, loaded with HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED.
/// Units: memory in bytes, distances as in the SLIT. Cost: O(objects + nodes squared).
/// Source: hwloc 2.9, "Object Types" and "Topology Attributes".
MachineObjects ReadObjects(hwloc_topology* topology);

/// The objects that `xml` describes, in format 1, 2 or 3 of hwloc's exports. Of the distances,
/// those named NUMALatency; kinds of cores rank in their order, as hwloc writes them.
/// Errors: kInvalidArgument with the problem and its byte.
/// Units: memory in bytes, distances as in the SLIT. Cost: O(size).
/// Source: hwloc 2.9 hwloc2.dtd and 3.0 hwloc/export.h.
StatusOr<MachineObjects> ReadXml(std::string_view xml);

}  // namespace qrm
