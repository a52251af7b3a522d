// The NUMA nodes of a container with exclusive CPUs, and its CPUs there.
#pragma once

#include <optional>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "plugins/cpu/room.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// The masks that could give `room.count` CPUs of `room`, the best first; none when nothing fits.
/// Of a number of nodes, only masks of as few packages as possible if `rule` wants few nodes.
std::vector<TopologyHint> FittingMasks(const View& view, const Room& room,
                                       const ExclusiveRule& rule);

/// OK when the request fills `nodes`, if its pod has them exclusively by its annotation.
Status CheckFilled(const View& view, const ContainerRequest& request, const rules::Tenant& tenant,
                   const NumaMask& nodes);

/// `room.count` CPUs of `room` by `rule`, or all of its nodes' CPUs, within `hint` as far as the
/// rule demands. Absent when the rule does not allow the nodes.
std::optional<StatusOr<CpuSet>> PickOwnCpus(const View& view, const Room& room,
                                            const ExclusiveRule& rule, const NumaMask& hint);

/// Takes the CPUs that the pod has already first, so that the pod has no more at once than it
/// needs. Absent if those are not on the container's nodes.
std::optional<CpuSet> ReusedCpus(const View& view, const Room& room, const ExclusiveRule& rule,
                                 const NumaMask& hint);

}  // namespace qrm::cpu
