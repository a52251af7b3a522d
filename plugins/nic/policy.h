// Decides which NIC a container uses: pure functions of NICs, configuration, state and request.
#pragma once

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/nic/state.h"

namespace qrm::nic {

/// The NUMA nodes with a healthy NIC that has room, each preferred; also all nodes together, if a
/// near NIC is only preferred. Impossible when no NIC has room; no preference when no NIC has a
/// node. Errors: kInvalidArgument for a negative bandwidth; kResourceExhausted, as of
/// PlaceContainer, when no NIC has room and a NIC is unhealthy.
StatusOr<HintList> NicHints(const View& view, const ContainerRequest& request);

/// The allocation of a container, and what the state keeps of it.
struct Decision {
  ResourceAllocation allocation;
  Use use;
};

/// The healthy NIC for `request` within `hint` (empty nodes: anywhere): the NIC that the pod
/// already uses, else the least used, else the first by name. Errors: kResourceExhausted with the
/// free bandwidth or the problem of each NIC.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

/// The updated allocation of a container that got `nic` by `granted`: new addresses for those that
/// the NIC lost, and its problem; an empty problem if an earlier one is over.
ResourceAllocation Retold(const ResourceAllocation& granted, const NicInfo& nic,
                          const NicNames& names);

}  // namespace qrm::nic
