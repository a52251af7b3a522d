// Changes the CPUs of shared containers in the kernel at once, and finds when to tell the runtime.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "api/base/durations.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/reconcile/plan.h"
#include "manager/reconcile/reconcile_options.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Updates that change nothing but the CPUs of containers without exclusive ones. An update by the
/// runtime takes it some 20 ms, in which it creates, starts and removes nothing: it is told one
/// container at a time while it does nothing else, and of none that has its former CPUs again by
/// then. What has to be told is what the records and LiveContainers::Defer say, so that only the
/// last CPUs are, and a restart of either side forgets nothing.
///
/// Threads: the state loop only.
class DeferredUpdates {
 public:
  struct Parts {
    CpusetSource read;  ///< empty: nothing is deferred
    LiveContainers& live;
    ForeignWrites& writes;
  };
  /// The parts outlive the object.
  DeferredUpdates(Parts parts, const DeferralOptions& options);

  /// Those of `updates` that the runtime has to be sent now. Containers of the others give CPUs up
  /// here; those that gain some do in Grow, after the runtime has answered what it was sent.
  /// Without a cgroup that takes its CPUs, a container gets its update now. Cost: two small files
  /// for each that has other CPUs than it was last given.
  std::vector<PlannedUpdate> TakeFrom(std::vector<PlannedUpdate> updates,
                                      const checkpoint::NodeState& state, const CpuSet& offline);
  /// One sentence for each that the kernel does not give its CPUs: the runtime is to do it.
  std::vector<std::string> Grow(const checkpoint::NodeState& state, const CpuSet& offline);

  /// Forgets those of which the runtime knows already, and returns how many are left.
  std::size_t Settle(const checkpoint::NodeState& state, const CpuSet& offline);
  /// Containers of which the runtime has not been told leave the CPUs that it, or somebody else,
  /// has written to their cgroups meanwhile.
  void Correct(const checkpoint::NodeState& state, const CpuSet& offline);
  /// What the runtime is to be sent now: of the container that has waited longest, unless the
  /// runtime is busy and it has not waited for too long.
  std::optional<PlannedUpdate> Next(const checkpoint::NodeState& state, const CpuSet& offline);
  /// The runtime did not take it: it is asked again a little later.
  void NoteRefusal();

 private:
  bool Defer(const PlannedUpdate& update, const checkpoint::NodeState& state, const CpuSet& owned);
  std::optional<PlannedUpdate> UpdateOf(const ContainerKey& key, const checkpoint::NodeState& state,
                                        const CpuSet& offline) const;

  struct Growth {
    ContainerKey key;
    std::string id;
    CgroupCpuset at;
    CpuSet cpus;
  };

  const Parts parts_;
  const DeferralOptions options_;
  std::vector<Growth> growing_;
  std::chrono::steady_clock::time_point corrected_at_;
  std::chrono::steady_clock::time_point not_before_;
};

}  // namespace qrm::manager
