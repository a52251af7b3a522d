// Keeps other containers off exclusive CPUs, by writing to cgroups without delay, and remembers
// updates that the runtime may not have written yet.
#pragma once

#include <chrono>
#include <map>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/drift.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/live_containers.h"
#include "topology/machine.h"

namespace qrm::manager {

/// CPUs that the runtime is about to give to containers. It asks qrmd before it writes an update to
/// a cgroup, and cannot report the write while it waits for qrmd's answer about another container.
///
/// Threads: any.
class UpdatesUnderWay {
 public:
  /// Longer than a runtime takes for one update: older updates are written, or have failed.
  static constexpr std::chrono::seconds kLongest{5};

  struct Update {
    CpuSet cpus;
    std::chrono::steady_clock::time_point told_at;
  };

  /// The runtime was just asked to give `cpus` to the container.
  void Note(const ContainerKey& key, CpuSet cpus);
  /// The updates that give containers some of `cpus`. Cost: O(updates of kLongest).
  std::map<ContainerKey, Update> With(const CpuSet& cpus) const;
  /// The latest update of the container has been written.
  void Forget(const ContainerKey& key);

 private:
  mutable Mutex mutex_;
  std::map<ContainerKey, Update> updates_ QRM_GUARDED_BY(mutex_);
};

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
