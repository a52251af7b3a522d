// Remembers what earlier runs compared, so that the next run compares only changes.
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
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// The plugins that a run asks for everything.
struct Scope {
  bool nobody() const { return !all && resources.empty(); }
  void Add(const std::string& resource) {
    all = all || resource.empty();
    resources.insert(resource);
  }

  bool all = false;
  std::set<std::string> resources;  ///< ignored if `all`
};

/// The scope of a small run beside the plugins' changes.
struct Changes {
  bool wanted = false;
  std::set<ContainerKey> started;
};

/// The state when a run asked the plugins, and the plugins that it did not ask.
struct Inquiry {
  std::shared_ptr<const checkpoint::NodeState> state;
  std::set<std::string> unasked;  ///< plugins that answer for their resources in another run
  bool whole = false;             ///< all plugins were asked
};

/// Remembers the state with which each plugin's latest answer was compared.
///
/// Threads: the state loop only.
class ComparedAnswers {
 public:
  /// The pods for which `answers` and `now` may disagree: those that changed in either since the
  /// last comparison, and those that the last comparison left unsettled.
  PodsByPlugin ToCompare(const Inquiry& inquiry, const AllocationsByPlugin& answers,
                         const checkpoint::NodeState& now) const;

  /// The answers were compared, with the result `plan`.
  void Note(const Inquiry& inquiry, const AllocationsByPlugin& answers, const ReconcilePlan& plan);

 private:
  /// The plugins that answer for their own resources, so that no other plugin does.
  using Speakers = std::set<std::string>;
  struct Comparison {
    calls::HeldAllocations answer;
    std::shared_ptr<const checkpoint::NodeState> state;  ///< without later admissions
    Speakers speakers;
    PodSet unsettled;
  };

  static Speakers SpeakersOf(const Inquiry& inquiry, const AllocationsByPlugin& answers);

  std::map<std::string, Comparison> last_;  ///< by plugin
};

/// Remembers for which containers updates were planned, and from which records.
///
/// Threads: the state loop only.
class UpdatedContainers {
 public:
  /// `live` outlives the object.
  explicit UpdatedContainers(const LiveContainers& live) : live_(live) {}

  /// The live containers that may need an update to `now`: changed containers, containers with
  /// changed records or deferred updates, and those updated in the last run, which may have failed.
  std::map<ContainerKey, LiveContainer> ToUpdate(
      const std::shared_ptr<const checkpoint::NodeState>& now, const CpuSet& offline);

  /// Takes the updates that were planned for the containers of ToUpdate.
  void Note(const std::vector<PlannedUpdate>& updates);

  /// No updates were planned in this run.
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

/// The live containers among `keys`.
std::map<ContainerKey, LiveContainer> FindLive(const LiveContainers& live,
                                               const std::set<ContainerKey>& keys);

}  // namespace qrm::manager
