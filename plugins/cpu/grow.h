// Resizes in place: a container keeps the CPUs of its own that it has, or takes over those of its
// pod's ended containers.
#pragma once

#include <optional>

#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/room.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// `held`, and as many CPUs of `room` as are missing, near to those; on no other NUMA node where
/// `rule` says so, and as many on each where it says that. Absent where that cannot be, and where
/// nothing is held.
std::optional<CpuSet> GrownInPlace(const Machine& machine, const CpuSet& held, const Room& room,
                                   const ExclusiveRule& rule);

/// The same under the static policy, within `hint` where that names nodes.
std::optional<CpuSet> GrownByStaticPolicy(const View& view, const Room& room,
                                          const TopologyHint& hint);

/// How many CPUs of its own a container has that is new, before anybody knows where: whole ones, of
/// which `placement` may leave a fraction to a pool.
int WholeCpusOf(const ContainerRequest& request, const Placement& placement);

/// Whether the container of `former` wants no more CPUs of its own than it has: then it keeps them,
/// and at least those of its first start, whatever becomes of its request or of the rules.
bool Shrinks(const Holding& former, const ContainerRequest& request, const Placement& placement);

/// What `former` has once it wants `count` CPUs, which are no more than that: it gives up what it
/// got by growing, and keeps its baseline.
CpuSet ShrunkInPlace(const Machine& machine, const Holding& former, int count);

/// Those of `cpus`, which the container gets now, that it gives up when it shrinks: what it has
/// beyond the number of CPUs with which it first started.
CpuSet GrownPart(const View& view, const CpuSet& cpus);

}  // namespace qrm::cpu
