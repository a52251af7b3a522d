// Decides which NIC a container uses: pure functions of NICs, configuration, state and request.
#pragma once

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/nic/state.h"

namespace qrm::nic {

/// What a container learns about its NIC. Source: the QoS Resource Manager proposal, example 3.
inline constexpr char kIpv4Env[] = "AFFINITY_NIC_ADDR_IPV4";
inline constexpr char kIpv6Env[] = "AFFINITY_NIC_ADDR_IPV6";
inline constexpr char kNetnsAnnotation[] = "kubernetes.io/host-netns-path";

/// The NUMA nodes with a NIC that has room, each preferred; where the NIC is only preferred to be
/// near, all nodes together too. Impossible when no NIC has room; no preference when the NICs are
/// near to no node. Errors: kInvalidArgument for a negative bandwidth.
StatusOr<HintList> NicHints(const View& view, const ContainerRequest& request);

/// What a container gets, and what the state remembers of it.
struct Decision {
  ResourceAllocation allocation;
  Use use;
};

/// The NIC for `request` within `hint` (empty nodes: anywhere): the one that the pod already uses,
/// else the least used, else the first by name. Errors: kResourceExhausted naming what each NIC has
/// free.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

}  // namespace qrm::nic
