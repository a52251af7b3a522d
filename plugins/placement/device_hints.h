// What devices that a container already has say about NUMA nodes: their hints, and their part in
// the merge.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/hint.h"
#include "api/id_set.h"
#include "plugins/placement/demand.h"
#include "topology/machine.h"
#include "topology/merge.h"

namespace qrm::placement {

/// One hint for each node of `machine` that a device is near to; preferred is the first of `nodes`.
/// A node without CPUs stands for the nodes that it is nearest to, and a node that the machine does
/// not have for none. No preference where none is left. Units: the kernel's node numbers.
HintList HintsOfDevice(const Machine& machine, const std::vector<int>& nodes);

/// The smallest sets of nodes that each of `devices` (its nodes) is near to one of, all preferred.
/// A device without a known node counts for nothing. Where the devices are near to more than ten
/// nodes and share none, the set of all these nodes. Cost: O(devices x 2^nodes), at most 2^10.
/// Source: Kubernetes 1.36, device manager, generateDeviceTopologyHints.
HintList HintsOfDevices(const Machine& machine, const std::vector<NumaMask>& devices);

/// Merges `hints`, which hold those of `devices` by their names. Devices that do not bind, and
/// under best-effort all, get three tries: on the nodes that they are attached to, on any that they
/// are near to, and without them, which a reason of the result then says.
MergeResult MergeBesideDevices(const Machine& machine, HintsByResource hints,
                               const std::map<std::string, GivenDevice>& devices,
                               const MergeOptions& options);

}  // namespace qrm::placement
