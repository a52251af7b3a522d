// Keeps other containers off exclusive CPUs, by writing to cgroups without delay.
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

/// The containers of a node, running and on record.
struct NodeCpusets {
  const checkpoint::NodeState& state;
  LiveContainers& live;  ///< notes cpusets that the runtime has to take later
  const Machine& machine;
  const CpusetSource& read;  ///< empty: no cpuset is read or written
  UpdatesUnderWay& updates;  ///< updates that are found written are forgotten
};

/// Returns when no other recorded container may run on the exclusive CPUs of `key`. The other
/// containers lose these CPUs; if none would be left, they get all CPUs that are not exclusive,
/// until a reconcile sets their recorded ones. This writes to their cgroups, because a runtime that
/// waits for qrmd's answer takes no update; the runtime gets the same values later. Cgroups are not
/// read for containers that have other CPUs by their record and by what the runtime took.
///
/// Waits at most 200 ms for updates under way that give other containers such CPUs, since they
/// would overwrite the written cpusets. Cost: O(owners of CPUs) if no container has to leave, else
/// O(containers), and some 0.2 ms in the kernel for each that leaves. Errors: kFailedPrecondition
/// for a container without any CPUs to go to, or that the kernel does not move; kPermissionDenied
/// where cgroups cannot be written.
Status MakeRoomFor(const ContainerKey& key, const NodeCpusets& node);

/// Whether the container was created with CPUs that are now exclusive to others. Cost: O(owners).
bool MayRunOnOwned(const ContainerKey& key, const NodeCpusets& node);

/// Moves the container, with or without a record, off exclusive CPUs of others. Errors: as above.
Status LeaveOwned(const ContainerKey& key, const NodeCpusets& node);

}  // namespace qrm::manager
