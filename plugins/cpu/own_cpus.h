// The NUMA nodes of a container with exclusive CPUs, and its CPUs there, also when it grows or
// shrinks in place.
#pragma once

#include <optional>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/config/classify.h"
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

/// `held`, and the missing number of CPUs of `room`, near `held`. If `rule` says so, on no other
/// NUMA node, or as many on each node. Absent if that is not possible, or nothing is held.
std::optional<CpuSet> GrownInPlace(const Machine& machine, const CpuSet& held, const Room& room,
                                   const ExclusiveRule& rule);

/// The same under the static policy, within the nodes of `hint` if it has any.
std::optional<CpuSet> GrownByStaticPolicy(const View& view, const Room& room,
                                          const TopologyHint& hint);

/// How many exclusive CPUs a new container gets, before their nodes are known: whole CPUs;
/// `placement` may leave a fraction to a pool.
int WholeCpusOf(const ContainerRequest& request, const Placement& placement);

/// Whether the container of `former` requests no more exclusive CPUs than it has. Then it keeps at
/// least the CPUs of its first start, whatever becomes of its request or of the rules.
bool Shrinks(const Holding& former, const ContainerRequest& request, const Placement& placement);

/// The CPUs of `former` once it requests `count` CPUs, which are no more than it has. It gives up
/// the CPUs that it grew by, and keeps its baseline.
CpuSet ShrunkInPlace(const Machine& machine, const Holding& former, int count);

/// The part of `cpus`, the container's new CPUs, that it gives up when it shrinks: those beyond the
/// number of CPUs at its first start.
CpuSet GrownPart(const View& view, const CpuSet& cpus);

}  // namespace qrm::cpu
