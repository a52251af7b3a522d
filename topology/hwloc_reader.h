// Copies the objects of a loaded hwloc topology.
#pragma once

#include "topology/machine_objects.h"

struct hwloc_topology;

namespace qrm {

/// The objects of `topology`, loaded with HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED.
/// Units: memory in bytes, distances as in the SLIT. Cost: O(objects + nodes squared).
/// Source: hwloc 2.9, "Object Types" and "Topology Attributes".
MachineObjects ReadObjects(hwloc_topology* topology);

}  // namespace qrm
