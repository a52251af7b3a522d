// Tracks unpinned containers: those that started without qrmd, or whose admission failed.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/repeated_lines.h"
#include "api/base/status.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/unplaced_container.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

using PodAndContainer = std::pair<RuntimePod, RuntimeContainer>;

/// `demand` without containers of its pod that must not be placed with it: existing containers,
/// each of which is placed separately so that its values are applied too; and earlier init
/// containers, which have ended.
placement::ContainerDemand WithoutPlaced(placement::ContainerDemand demand,
                                         const LiveContainers& live);

/// Remembers unpinned containers and tries to admit them after the fact. It does the same for
/// recorded containers that were admitted without a plugin, once this plugin has registered. Until
/// a container has its CPUs, it is kept off the exclusive CPUs on record, even if their plugin does
/// not run.
///
/// After a start it waits until all plugins of the checkpoint have registered, or until the grace
/// ends: the first plugin's allocations would bind the other plugins to its NUMA nodes.
///
/// Threads: the state loop only, except for List and Find.
class Unplaced {
 public:
  /// Returns the requested resources that their plugins answered without an allocation.
  using Admit =
      std::function<StatusOr<std::vector<std::string>>(const placement::ContainerDemand&)>;

  /// `parts` outlive the object. `admit` admits a running container. The grace begins now.
  Unplaced(const NodeParts& parts, Admit admit, std::chrono::milliseconds spec_deadline,
           std::chrono::milliseconds grace)
      : parts_(parts),
        admit_(std::move(admit)),
        spec_deadline_(spec_deadline),
        grace_end_(DeadlineAfter(grace)) {}

  /// `skipped` is why it has no allocation; empty while it has not been tried.
  void Add(const RuntimePod& pod, const RuntimeContainer& container, std::string skipped = {});
  void Erase(const ContainerKey& key);
  /// Forgets containers that are no longer live, or are live under another id.
  void EraseEnded();

  /// Adds the recorded containers that the plugin of `resource` would have been asked about, had it
  /// been registered.
  void AddIncomplete(const std::string& resource);
  /// The plugins of `resources` have allocated nothing for the recorded container: TryDue asks them
  /// again, after 1 s, 2 s, and so on, up to 30 s. Katalyst's plugins answer so for a sidecar that
  /// comes before its main container.
  void AskAgain(const ContainerKey& key, const std::vector<std::string>& resources);
  /// Tries the containers of AskAgain whose time has come.
  void TryDue();
  /// Tries each container in a job of its own, so that creations wait neither for all of them nor
  /// for a spec.
  void TryAll();
  /// The same for the containers of `keys`, from the last to the first.
  void Try(std::vector<ContainerKey> keys);
  /// The containers without a record.
  std::vector<ContainerKey> Keys() const;
  /// Moves unpinned containers off the CPUs that are exclusive now.
  void LeaveOwnedCpus();

  /// Whether plugins of the checkpoint have not registered yet, within the grace.
  bool AwaitsPlugins() const;

  /// The containers without an allocation, those of which a later plugin rejected the rest, and
  /// those of AskAgain.
  /// Threads: any.
  std::vector<UnplacedContainer> List() const;
  /// The container as in List. Threads: any.
  std::optional<UnplacedContainer> Find(const ContainerKey& key) const;

 private:
  /// When plugins that allocated nothing are asked again.
  struct Question {
    Deadline next;
    std::chrono::seconds wait{0};
  };

  bool IsLive(const ContainerKey& key, const RuntimeContainer& container) const;
  bool IsWaiting(const ContainerKey& key);
  void Place(const ContainerKey& key, const StatusOr<placement::ContainerDemand>& demand);
  void ShowTried(const ContainerKey& key, UnplacedState state, std::string why);
  void FindDemand(const ContainerKey& key, DemandSource::Found found);
  bool MayUse(const ContainerKey& key, const CpuSet& owned) const;
  void MoveOff(const ContainerKey& key, const std::string& cpus);

  const NodeParts& parts_;
  const Admit admit_;
  const std::chrono::milliseconds spec_deadline_;
  const Deadline grace_end_;
  std::map<ContainerKey, PodAndContainer> containers_;  // without a record
  std::set<ContainerKey> incomplete_;                   // with a record
  std::map<ContainerKey, Question> unanswered_;         // of incomplete_
  RepeatedLines refused_lines_;
  std::set<ContainerKey> refused_;
  std::map<ContainerKey, std::string> moved_to_;  // CPUs

  mutable Mutex mutex_;
  /// Those of `containers_`, `refused_` and `unanswered_`.
  std::map<ContainerKey, UnplacedContainer> shown_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
