// Computes what a reconcile has to change: pure functions of what plugins say and the runtime has.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/pod_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"
#include "topology/machine.h"

namespace qrm::manager {

/// `fresh`, with the hints, variables, annotations, mounts, devices and amounts by node that the
/// plugin did not repeat taken from `before`.
ResourceAllocation MergeAllocation(const ResourceAllocation& before, ResourceAllocation fresh);

/// What the plugins' answers mean for the state.
struct ReconcilePlan {
  checkpoint::Change change;  ///< containers whose allocations changed; empty on an idle node
  /// What plugins hold for containers that nobody knows, or that run without it and cannot get it
  /// any more, by resource.
  std::map<std::string, std::set<ContainerKey>> orphans;
  /// Containers whose records say that a plugin gave them something that it no longer knows, by
  /// resource.
  std::map<std::string, std::set<ContainerKey>> missing;
  PodSet refused;                     ///< whose containers do not get what plugins want for them
  std::vector<std::string> problems;  ///< one sentence each
  /// Containers were admitted or removed while the plugins answered: these were left alone and
  /// another run has to look at them.
  bool stale = false;
};

using PodsByPlugin = std::map<std::string, PodSet>;

/// What a comparison is about.
struct CompareScope {
  /// Plugins that would speak for their own resources but were not asked this time.
  std::set<std::string> unasked;
  PodsByPlugin pods;  ///< to be compared; all of them, for a plugin that is not in it
};

/// Compares `answers` with `now`. Only what is the same in `asked`, the state when the plugins were
/// asked, is judged: the rest changed meanwhile. A known container that a plugin no longer names
/// keeps its record. An allocation that an admission would refuse is not taken: that is a problem.
ReconcilePlan PlanReconcile(const checkpoint::NodeState& asked, const checkpoint::NodeState& now,
                            const AllocationsByPlugin& answers, const Machine& machine,
                            const CompareScope& scope = {});

/// The same for `answers` that say only what changed: a container that a plugin does not name keeps
/// what it has, and is not missing. `unasked` as in a CompareScope.
ReconcilePlan PlanChanges(const checkpoint::NodeState& asked, const checkpoint::NodeState& now,
                          const AllocationsByPlugin& answers, const Machine& machine,
                          const std::set<std::string>& unasked);

/// One container whose runtime has other values than its record.
struct PlannedUpdate {
  ContainerKey key;
  std::string container_id;
  StringMap properties;  ///< OCI property -> value, only those that differ
  bool grows = false;    ///< it gets CPUs that it did not have

  bool operator==(const PlannedUpdate&) const = default;
};

/// The properties of `record` that its container `id` has not taken yet, but for CPUs that are
/// `offline`. OomScoreAdj, which no runtime changes in a live container, is not among them. Cost:
/// no allocation when there are none.
StringMap PropertiesToApply(const checkpoint::ContainerRecord& record, const std::string& id,
                            const CpuSet& offline = {});

/// The CPUs that a container of `record` is to run on, but for those that others have `owned` and
/// those that are `offline`; none for one that is not pinned.
CpuSet DueCpus(const checkpoint::ContainerRecord& record, const CpuSet& owned,
               const CpuSet& offline);

/// What came of an update: the runtime took it, or nobody knows, since one that failed may have
/// been applied all the same, or be so late.
enum class Taken { kYes, kUnknown };

/// `record` after `update`. What an update touched of which nobody knows is applied no more, so
/// that it is sent again.
checkpoint::ContainerRecord AfterUpdate(const checkpoint::ContainerRecord& record,
                                        const PlannedUpdate& update, Taken taken);

/// The updates that `live` containers need, those that give CPUs up before those that gain any. The
/// `deferred` ones may have other CPUs than they took (LiveContainers::Defer), and get them again.
std::vector<PlannedUpdate> PlanUpdates(const checkpoint::NodeState& state,
                                       const std::map<ContainerKey, LiveContainer>& live,
                                       const CpuSet& offline = {},
                                       const std::set<ContainerKey>& deferred = {});

/// Adds one sentence to `problems` for each of the `live` containers that owns CPUs which are
/// `offline`.
void TellOfOffline(const checkpoint::NodeState& state,
                   const std::map<ContainerKey, LiveContainer>& live, const CpuSet& offline,
                   std::vector<std::string>& problems);

}  // namespace qrm::manager
