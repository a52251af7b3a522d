// Computes the changes of a reconcile: pure functions of the plugins' answers, the records and the
// values in the runtime.
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

/// Returns `fresh`. Hints, variables, annotations, mounts, devices and amounts by node that the
/// plugin did not repeat are taken from `before`.
ResourceAllocation MergeAllocation(const ResourceAllocation& before, ResourceAllocation fresh);

/// The difference between the plugins' answers and the state.
struct ReconcilePlan {
  checkpoint::Change change;  ///< containers whose allocations changed; empty on an idle node
  /// Allocations of plugins for unknown containers, or for containers that run without them and
  /// cannot get them any more, by resource.
  std::map<std::string, std::set<ContainerKey>> orphans;
  /// Containers with a recorded allocation that its plugin no longer knows, by resource.
  std::map<std::string, std::set<ContainerKey>> missing;
  PodSet refused;                     ///< pods for which a plugin's new allocation was rejected
  std::vector<std::string> problems;  ///< one sentence each
  /// Containers were admitted or removed while the plugins answered: they were skipped, and another
  /// run must check them.
  bool stale = false;
};

using PodsByPlugin = std::map<std::string, PodSet>;

/// The plugins and pods to compare.
struct CompareScope {
  /// Plugins that answer for their own resources but were not asked this time.
  std::set<std::string> unasked;
  PodsByPlugin pods;  ///< the pods to compare by plugin; all pods, for a plugin without an entry
};

/// Compares `answers` with `now`. Containers that differ between `now` and `asked`, the state when
/// the plugins were asked, are skipped. A known container that a plugin no longer names keeps its
/// record. An allocation that an admission would reject is not taken over: that is a problem.
ReconcilePlan PlanReconcile(const checkpoint::NodeState& asked, const checkpoint::NodeState& now,
                            const AllocationsByPlugin& answers, const Machine& machine,
                            const CompareScope& scope = {});

/// The same for `answers` that contain only changes: a container that a plugin does not name keeps
/// its allocations, and is not missing. `unasked` as in a CompareScope.
ReconcilePlan PlanChanges(const checkpoint::NodeState& asked, const checkpoint::NodeState& now,
                          const AllocationsByPlugin& answers, const Machine& machine,
                          const std::set<std::string>& unasked);

/// An update of one container whose values in the runtime differ from its record.
struct PlannedUpdate {
  ContainerKey key;
  std::string container_id;
  StringMap properties;  ///< OCI property -> value, only those that differ
  bool grows = false;    ///< the container gains CPUs

  bool operator==(const PlannedUpdate&) const = default;
};

/// The properties of `record` that its container `id` does not have yet, without `offline` CPUs.
/// OomScoreAdj and HugepageLimits, which no runtime changes in a live container, are not among
/// them. Cost: no heap allocation when there are none.
StringMap PropertiesToApply(const checkpoint::ContainerRecord& record, const std::string& id,
                            const CpuSet& offline = {});

/// The CPUs that the container of `record` should run on, without those that others have `owned`
/// and without `offline` CPUs; none for a container that is not pinned.
CpuSet DueCpus(const checkpoint::ContainerRecord& record, const CpuSet& owned,
               const CpuSet& offline);

/// The outcome of an update: the runtime accepted it, or it is unknown. A failed update may have
/// been applied all the same, or may be applied later.
enum class Taken { kYes, kUnknown };

/// `record` after `update`. If the outcome is unknown, the touched values no longer count as
/// applied, so that they are sent again.
checkpoint::ContainerRecord AfterUpdate(const checkpoint::ContainerRecord& record,
                                        const PlannedUpdate& update, Taken taken);

/// The updates that `live` containers need: updates that give CPUs up come before updates that gain
/// CPUs. `deferred` containers may have other CPUs than the runtime knows (LiveContainers::Defer),
/// and get their CPUs again.
std::vector<PlannedUpdate> PlanUpdates(const checkpoint::NodeState& state,
                                       const std::map<ContainerKey, LiveContainer>& live,
                                       const CpuSet& offline = {},
                                       const std::set<ContainerKey>& deferred = {});

/// Adds one sentence to `problems` for each `live` container with `offline` exclusive CPUs.
void TellOfOffline(const checkpoint::NodeState& state,
                   const std::map<ContainerKey, LiveContainer>& live, const CpuSet& offline,
                   std::vector<std::string>& problems);

}  // namespace qrm::manager
