// Takes back what plugins gave: to pods that are gone, and to containers whose admission failed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/admission/driver_removals.h"
#include "plugins/placement/admission_options.h"

namespace qrm::manager {

class Plugins;
class StateLoop;

/// Tells plugins that pods or containers are gone. A plugin that cannot be told is told when it
/// registers again; until then the checkpoint remembers.
///
/// Threads: the state loop only.
class Releaser {
 public:
  /// `state` and `plugins` outlive the releaser, which outlives what it has posted to `state`.
  Releaser(StateLoop& state, Plugins& plugins, placement::AdmissionOptions options);

  /// Undoes an admission that failed: `resources` are those whose plugins were asked to allocate,
  /// by container. What a container had before is taught to its plugin again. The rest is released:
  /// container by container when their pod has others, else the whole pod is.
  void RollBack(const std::string& pod_uid,
                const std::map<std::string, std::vector<std::string>>& resources);

  /// Frees what the containers hold and forgets them; their pod lives on. Those that are not known
  /// are left out. Errors: the store's; the plugins were told then.
  Status RemoveContainers(const std::vector<ContainerKey>& keys);

  /// Frees all that these pods hold and forgets them. Built-in plugins know it on return. Plugins
  /// that are processes are told of one pod after another, and nobody waits for them. A pod stays
  /// on record until its compute drivers have taken the removal, and has to be named again when
  /// RemovalIsDue. `done` runs on the loop when all plugins know of the pods that are forgotten,
  /// for those with a driver on their own. After a crash plugins are found to hold what nobody has.
  /// Errors: the store's; a repetition is harmless.
  Status RemovePods(const std::vector<std::string>& uids, std::function<void()> done = [] {});
  /// Whether pods stayed whose drivers are to be told again now; says so once of each.
  [[nodiscard]] bool RemovalIsDue() { return drivers_.TakeDue(); }

  /// Waits until the plugins know of the pods removed so far: for an admission that needs their
  /// room. False if they knew.
  bool FinishRemovals();
  /// The same for the pod of `uid`, which may be about to return.
  void FinishRemovalOf(const std::string& uid);

  /// Tells a plugin that is back which pods went while it was away, one after another, unless it
  /// does so already. Runs `done` on the loop when all were told or one could not be, if there was
  /// any. Nobody waits for it but an admission of the pod that is being told.
  void Replay(const std::string& resource, std::function<void()> done = [] {});

 private:
  struct Round;
  /// A pod that is forgotten, and the plugins that have yet to hear of it.
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
  /// But for compute drivers, which are told first.
  std::vector<std::string> ServedOf(const std::set<std::string>& names) const;
  Deadline CallDeadline() const;

  StateLoop& state_;
  Plugins& plugins_;
  const placement::AdmissionOptions options_;
  std::map<std::string, std::string> replaying_;  ///< by resource: the pod that is being told
  std::vector<Untold> untold_;                    ///< the first one is being told, if any
  std::vector<std::function<void()>> when_told_;
  uint64_t round_ = 0;  ///< of telling; an answer to an earlier one comes too late
  DriverRemovals drivers_;
};

}  // namespace qrm::manager
