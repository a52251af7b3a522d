// What earlier runs have seen, so that the next one looks only at what changed since.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "api/pod_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/plan.h"
#include "manager/reconcile/run_scope.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Remembers with which state each plugin's latest answer was compared.
///
/// Threads: the state loop only.
class ComparedAnswers {
 public:
  /// Where `answers` and `now` may disagree: pods that either tells otherwise than in the last
  /// comparison, and those that it left unsettled.
  PodsByPlugin ToCompare(const Inquiry& inquiry, const AllocationsByPlugin& answers,
                         const checkpoint::NodeState& now) const;

  /// They were compared, and `plan` tells what came of it.
  void Note(const Inquiry& inquiry, const AllocationsByPlugin& answers, const ReconcilePlan& plan);

 private:
  /// The plugins that speak for their own resources, so that no other one does.
  using Speakers = std::set<std::string>;
  struct Comparison {
    calls::HeldAllocations answer;
    std::shared_ptr<const checkpoint::NodeState> state;  ///< what was admitted later is not in it
    Speakers speakers;
    PodSet unsettled;
  };

  static Speakers SpeakersOf(const Inquiry& inquiry, const AllocationsByPlugin& answers);

  std::map<std::string, Comparison> last_;  ///< by plugin
};

/// Remembers for which containers updates were planned, and by which records.
///
/// Threads: the state loop only.
class UpdatedContainers {
 public:
  /// `live` outlives the object.
  explicit UpdatedContainers(const LiveContainers& live) : live_(live) {}

  /// The live containers that may need an update by `now`: those that changed or whose records did,
  /// of which the runtime has yet to be told, and those that got one the last time, which may have
  /// failed.
  std::map<ContainerKey, LiveContainer> ToUpdate(
      const std::shared_ptr<const checkpoint::NodeState>& now, const CpuSet& offline);

  /// What was planned for the containers that ToUpdate returned.
  void Note(const std::vector<PlannedUpdate>& updates);

  /// None was planned.
  void Forget() { last_.reset(); }

 private:
  struct Plan {
    std::shared_ptr<const checkpoint::NodeState> state;
    uint64_t revision = 0;  ///< of the live containers
    CpuSet offline;
    std::set<ContainerKey> updated;
  };

  std::optional<std::set<ContainerKey>> Unlike(const checkpoint::NodeState& now,
                                               const CpuSet& offline) const;

  const LiveContainers& live_;
  std::optional<Plan> last_;
};

/// Those of `keys` that are live.
std::map<ContainerKey, LiveContainer> FindLive(const LiveContainers& live,
                                               const std::set<ContainerKey>& keys);

}  // namespace qrm::manager
