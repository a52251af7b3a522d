// Takes the CPUs that a container has for itself away from those that run there, in the kernel and
// at once.
#pragma once

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/drift.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Returns when no other container of `live` may run on the CPUs that `key` owns by `state`. It
/// writes to their cgroups because a runtime that waits for our answer to a start takes no update;
/// the next reconcile tells the runtime the same. Nothing is done where `read_cpuset` is empty.
/// Errors: kFailedPrecondition for a container that would be left without a CPU, or that the kernel
/// does not move.
Status MakeRoomFor(const ContainerKey& key, const checkpoint::NodeState& state,
                   const LiveContainers& live, const CpusetSource& read_cpuset);

}  // namespace qrm::manager
