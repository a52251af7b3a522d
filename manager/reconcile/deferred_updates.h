// Changes CPUs of containers without exclusive CPUs in the kernel at once, and sends the runtime
// their updates later.
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
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Defers updates that change only the CPUs of containers without exclusive CPUs. An update blocks
/// the runtime for some 20 ms, in which it creates, starts and removes nothing. It therefore gets
/// one update at a time while it is idle, and none for a container that has its former CPUs again.
/// The pending updates are computed from the records and LiveContainers::Defer. So only the latest
/// CPUs are sent, and a restart of qrmd or the runtime loses nothing.
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

  /// Returns the `updates` that must be sent to the runtime now, and defers the others. Deferred
  /// containers give CPUs up here, and gain CPUs in Grow, after the runtime has answered the sent
  /// updates. A container whose cgroup does not accept its CPUs is not deferred. Cost: two small
  /// files for each container that gives CPUs up.
  std::vector<PlannedUpdate> TakeFrom(std::vector<PlannedUpdate> updates,
                                      const checkpoint::NodeState& state, const CpuSet& offline);
  /// Whether deferred containers gain CPUs now: while a pod is created, started or removed they
  /// wait for a moment.
  bool MayGrow() const;
  /// If MayGrow, gives deferred containers the CPUs that they gain. Returns one sentence for each
  /// container whose cgroup does not accept them: the runtime gets its update instead. Cost: two
  /// small files for each such container.
  std::vector<std::string> Grow(const checkpoint::NodeState& state, const CpuSet& offline);

  /// Forgets deferred containers whose CPUs the runtime knows, and returns how many are left.
  std::size_t Settle(const checkpoint::NodeState& state, const CpuSet& offline);
  /// Corrects the CPUs that the runtime, or another process, has written to the cgroups of deferred
  /// containers meanwhile.
  void Correct(const checkpoint::NodeState& state, const CpuSet& offline);
  /// The update to send now: for the container that has waited longest. None while the runtime is
  /// busy, unless the container has waited for too long.
  std::optional<PlannedUpdate> Next(const checkpoint::NodeState& state, const CpuSet& offline);
  /// The runtime rejected an update: the next one is sent a little later.
  void NoteRefusal();

 private:
  bool Defer(const PlannedUpdate& update, const checkpoint::NodeState& state, const CpuSet& owned);
  std::optional<PlannedUpdate> UpdateOf(const ContainerKey& key, const checkpoint::NodeState& state,
                                        const CpuSet& offline) const;

  struct Growth {
    ContainerKey key;
    std::string id;
    CpuSet cpus;
  };
  /// Whether the runtime has been idle for `wanted`.
  bool IsQuiet(std::chrono::milliseconds wanted) const;

  const Parts parts_;
  const DeferralOptions options_;
  std::vector<Growth> growing_;
  std::chrono::steady_clock::time_point growing_since_;
  std::chrono::steady_clock::time_point corrected_at_;
  std::chrono::steady_clock::time_point not_before_;
};

}  // namespace qrm::manager
