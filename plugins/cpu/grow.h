// Resizes in place: a container keeps its exclusive CPUs, or takes over those of its pod's ended
// containers.
#pragma once

#include <optional>

#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/room.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

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
