// Places a pod on a node's NUMA nodes as the node itself will: hints, merge, allocate, by the code
// of qrmd's plugins.
#pragma once

#include <array>
#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/state.h"
#include "plugins/memory/state.h"
#include "plugins/nic/state.h"
#include "scheduler/cache/objects.h"
#include "scheduler/topology/node_model.h"

namespace qrm::scheduler {

/// What a node's plugins have given.
struct NodeHoldings {
  cpu::CpuState cpu;
  memory::Bindings memory;
  nic::NicState nic;
};

/// What a pod's containers were given, by resource: what plugins rebuild their state from.
using PodGrants = std::map<std::string, sdk::Grants>;

/// What was decided for one pod.
struct PodPlacement {
  PodGrants grants;
  memory::SavedInits inits;  ///< what init containers hold after the others took theirs
};

/// Nothing given.
NodeHoldings NothingHeld(const NodeModel& model);

/// What each container of `pod` asks of each plugin, in the order in which they start; none for a
/// pod of a skipped namespace. Source: qrmd's admission, manager/admission.
std::vector<std::vector<ContainerRequest>> RequestsOf(const NodeModel& model, const Pod& pod);

/// Places all containers of `pod` and adds them to `holdings`, or none and leaves it as it was.
/// Errors: a sentence without numbers, naming the resource that is short or the policy.
StatusOr<PodPlacement> PlacePod(const NodeModel& model, const Pod& pod, NodeHoldings& holdings);

}  // namespace qrm::scheduler
