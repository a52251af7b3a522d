// Decides which NIC a container uses: pure functions of NICs, configuration, state and request.
#pragma once

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/nic/state.h"

namespace qrm::nic {

/// The NUMA nodes with a healthy NIC that has room, each preferred; where the NIC is only preferred
/// to be near, all nodes together too. Impossible when no NIC has room; no preference when the NICs
/// are near to no node. Errors: kInvalidArgument for a negative bandwidth; kResourceExhausted, as
/// PlaceContainer has it, when no NIC has room and one is unhealthy.
StatusOr<HintList> NicHints(const View& view, const ContainerRequest& request);

/// What a container gets, and what the state remembers of it.
struct Decision {
  ResourceAllocation allocation;
  Use use;
};

/// The healthy NIC for `request` within `hint` (empty nodes: anywhere): the one that the pod
/// already uses, else the least used, else the first by name. Errors: kResourceExhausted naming
/// what each NIC has free, or what is wrong with it.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

/// What a container that was given `nic` by `granted` should know now: the addresses that the NIC
/// has in place of those that it lost, and its problem; an empty one where it was told of one that
/// is over.
ResourceAllocation Retold(const ResourceAllocation& granted, const NicInfo& nic,
                          const NicNames& names);

}  // namespace qrm::nic
