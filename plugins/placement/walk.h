// Places a pod on a node's NUMA nodes as the node itself will: hints, merge, allocate, by the code
// of qrmd's plugins.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/state.h"
#include "plugins/memory/state.h"
#include "plugins/nic/state.h"
#include "plugins/placement/demand.h"
#include "plugins/placement/node_model.h"
#include "plugins/placement/requests.h"

namespace qrm::placement {

/// What a node's plugins have allocated exclusively. Users of pools are noted for pools that follow
/// their containers.
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

/// Makes the pools of `held` what the others leave and their containers need. Their sizes are the
/// node's; which CPUs they are of, only for those that no one request changes.
void SettlePools(const NodeModel& model, NodeHoldings& held);

/// A pod's containers, in the order in which they start.
using PodDemands = std::vector<ContainerDemand>;
/// What one container asks of each plugin.
using Requests = std::vector<ContainerRequest>;

/// What each container of `pod` asks of each plugin. Errors: kPermissionDenied for what the pod's
/// namespace may not ask for; kInvalidArgument for annotations that cannot be read, and for one
/// resource that is requested under two names.
StatusOr<std::vector<Requests>> RequestsOf(const NodeModel& model, const PodDemands& pod);

/// Whether `pod` may get something exclusive on the node, however full that is, or a part of a pool
/// that follows it. Other pods hold nothing, and change nothing for any other pod.
bool MayHold(const NodeModel& model, const PodDemands& pod);

/// What `placement` gives; pools are left as they are.
NodeHoldings HoldingsOf(const NodeModel& model, const PodPlacement& placement);

/// Takes out of `held` what the containers of pod `uid` have; pools are left as they are. False
/// when that is nothing.
bool DropPod(const std::string& uid, NodeHoldings& held);

/// A pod with its allocations.
struct PlacedPod {
  PodPlacement placement;
  NodeHoldings after;  ///< what is held then
};

/// Places all containers of `pod` beside `held`. Errors: a sentence without numbers, naming the
/// resource that is short or the policy.
StatusOr<PlacedPod> PlacePod(const NodeModel& model, const PodDemands& pod,
                             const NodeHoldings& held);

}  // namespace qrm::placement
