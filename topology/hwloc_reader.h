// Turns a loaded hwloc topology into MachineParts, repairing what firmware got wrong.
#pragma once

#include "api/status.h"
#include "topology/discovery.h"
#include "topology/machine.h"

struct hwloc_topology;

namespace qrm {

/// What `topology` (loaded with HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) holds, by the kernel's
/// numbers; repairs are told in `warnings`.
/// Errors: kInvalidArgument when no usable CPU is left.
/// Units: memory in bytes, distances as in the SLIT. Cost: O(objects x depth + nodes squared).
/// Source: hwloc 2.9, "Object Types" and "Topology Attributes".
StatusOr<MachineParts> ReadParts(hwloc_topology* topology,
                                 MachineSource::OutsideCpuset outside_cpuset);

}  // namespace qrm
