// Keeps the CPUs that containers have for themselves clear of others, in the kernel and at once.
#pragma once

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/pods/updates_under_way.h"
#include "manager/reconcile/drift.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/live_containers.h"
#include "topology/machine.h"

namespace qrm::manager {

/// What runs on a node, and what of it is on record.
struct NodeCpusets {
  const checkpoint::NodeState& state;
  LiveContainers& live;  ///< of those that lose CPUs, the runtime is told later
  const Machine& machine;
  const CpusetSource& read;  ///< empty: nothing is done
  UpdatesUnderWay& updates;  ///< those that are found written are forgotten
};

/// Returns when no other container on record may run on the CPUs that `key` owns: those that have
/// some lose them, and one that would have none left goes where nobody owns CPUs, until a reconcile
/// brings it what it has then. It writes to their cgroups, because a runtime that waits for our
/// answer takes no update; it is told the same when it has time. Of those that are
/// elsewhere by their record and by what the runtime took, no cgroup is read. It waits at most 200
/// ms for updates that give others such CPUs and are under way, since they would be written over
/// what they leave. Cost: O(owners of CPUs) where nobody has to leave, else O(containers), and some
/// 0.2 ms in the kernel for each that leaves. Errors: kFailedPrecondition for a container that has
/// nowhere to go, or that the kernel does not move; kPermissionDenied where cgroups may not be
/// written.
Status MakeRoomFor(const ContainerKey& key, const NodeCpusets& node);

/// Whether the container was made with CPUs that others own now. Cost: O(owners).
bool MayRunOnOwned(const ContainerKey& key, const NodeCpusets& node);

/// The container, which need not be on record, leaves the CPUs that others own. Errors: as above.
Status LeaveOwned(const ContainerKey& key, const NodeCpusets& node);

}  // namespace qrm::manager
