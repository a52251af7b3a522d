// Releases the allocations of removed pods, and of containers whose admission failed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/resource.h"
#include "checkpoint/decision_trace.h"
#include "checkpoint/node_state.h"
#include "manager/admission/driver_removals.h"
#include "plugins/placement/admission_options.h"

namespace qrm::manager {

class Plugins;
class StateLoop;

/// Notifies plugins of removed pods and containers. For a plugin that cannot be reached, the
/// checkpoint keeps the pending removal until the plugin registers again.
///
/// Threads: the state loop only.
class Releaser {
 public:
  /// `state` and `plugins` outlive the releaser, which outlives what it has posted to `state`.
  /// `note` gets each removed pod.
  Releaser(
      StateLoop& state, Plugins& plugins, placement::AdmissionOptions options,
      checkpoint::NoteEvent note = [](const checkpoint::NodeEvent&) {});

  /// Undoes a failed admission. `resources` are those whose plugins were asked to allocate, by
  /// container. A container's recorded allocation is restored in its plugin. The rest is released:
  /// by container if the pod has records, else the whole pod.
  void RollBack(const std::string& pod_uid,
                const std::map<std::string, std::vector<std::string>>& resources);

  /// Releases the allocations of the containers and deletes their records; the pod stays. Unknown
  /// containers are ignored. Errors: the store's; the plugins have released then.
  Status RemoveContainers(const std::vector<ContainerKey>& keys);

  /// Releases the allocations of these pods and deletes their records. Built-in plugins have
  /// released on return. Plugin processes are notified of one pod after another, without waiting.
  /// A pod stays on record until its compute drivers have confirmed the removal; pass it again when
  /// RemovalIsDue. `done` runs on the loop when all plugins are notified, separately for pods with
  /// a driver. After a crash, resync finds allocations in plugins without a container.
  /// Errors: the store's; a repeated call is harmless.
  Status RemovePods(const std::vector<std::string>& uids, std::function<void()> done = [] {});
  /// Whether the drivers of pods that stayed are to be called again now; true once for each pod.
  [[nodiscard]] bool RemovalIsDue() { return drivers_.TakeDue(); }

  /// Waits until the plugins are notified of all pods removed so far, for an admission that needs
  /// the room. False if they already were.
  bool FinishRemovals();
  /// The same for the pod of `uid`, which may be about to be admitted again.
  void FinishRemovalOf(const std::string& uid);

  /// Sends a plugin that is running again its pending removals, one after another, unless that is
  /// in progress. If there were any, runs `done` on the loop when all were sent or one failed. Only
  /// an admission of the pod whose removal is being sent waits for it.
  void Replay(const std::string& resource, std::function<void()> done = [] {});

 private:
  struct Round;
  /// A pod without records, and the plugins that have not been notified of its removal.
  struct Untold {
    std::string uid;
    std::vector<std::string> plugins;
  };

  void RollBackContainer(const checkpoint::PodRecord& pod, const std::string& container,
                         const std::vector<std::string>& allocated);
  void ReleaseContainer(const ContainerKey& key, const std::vector<std::string>& resources);
  void Reteach(const checkpoint::PodRecord& pod, const std::string& container,
               const std::string& resource);
  Status TellRemoved(const std::string& resource, const std::string& uid);
  bool EndDriverOf(const ContainerKey& key, const checkpoint::ContainerRecord& record);
  Status ForgetPods(const std::vector<std::string>& uids, std::function<void()> done);
  void RemoveFromPlugins(const std::string& uid, const std::vector<std::string>& resources,
                         Round& round);
  void TellNext();
  void OnTold(uint64_t round, const std::map<std::string, Status>& answers);
  void PutOff(const std::string& plugin);
  void EndRemovals();
  bool IsBuiltIn(const std::string& plugin) const;
  void ReplayNext(const std::string& resource, std::vector<std::string> uids,
                  std::function<void()> done);
  void OnReplayed(const std::string& resource, const std::string& uid, const Status& told,
                  std::vector<std::string> uids, std::function<void()> done);
  void EndReplay(const std::string& resource, const std::function<void()>& done);
  void ForgetPending(const std::string& resource, const std::vector<std::string>& uids);
  std::set<std::string> PluginsOf(const checkpoint::ContainerRecord& record) const;
  /// The registered plugins in `names`, without compute drivers, which are notified first.
  std::vector<std::string> ServedOf(const std::set<std::string>& names) const;
  Deadline CallDeadline() const;

  StateLoop& state_;
  Plugins& plugins_;
  const placement::AdmissionOptions options_;
  const checkpoint::NoteEvent note_;
  std::map<std::string, std::string> replaying_;  ///< resource -> the pod whose removal is sent
  std::vector<Untold> untold_;                    ///< the first one is being sent, if any
  std::vector<std::function<void()>> when_told_;
  uint64_t round_ = 0;  ///< answers of earlier rounds are ignored
  DriverRemovals drivers_;
};

}  // namespace qrm::manager
