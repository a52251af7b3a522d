// The table of sandboxes and containers that the runtime has now: its ids for what the state names
// by pod UID and container name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/resource.h"

namespace qrm::manager {

/// One container as the runtime knows it.
struct LiveContainer {
  std::string id;
  std::string pod_id;
  /// False from its creation until its first process runs: updates have to wait until then, since
  /// a runtime that is just starting it takes them and applies nothing.
  bool started = false;
  std::string cgroups_path;  ///< as the runtime gives it; empty when it does not

  bool operator==(const LiveContainer&) const = default;
};

/// Threads: any. Cost: look-ups are O(log n).
class LiveContainers {
 public:
  std::optional<LiveContainer> Find(const ContainerKey& key) const;
  bool HasPod(const std::string& pod_uid) const;
  /// True once the runtime has told everything that exists.
  bool synchronized() const;
  std::map<ContainerKey, LiveContainer> All() const;
  /// The sandboxes of each pod, by its UID.
  std::map<std::string, std::set<std::string>> Pods() const;
  /// Up to `count` containers that follow `key`, and after the last the first ones: each once.
  std::vector<std::pair<ContainerKey, LiveContainer>> After(const ContainerKey& key,
                                                            std::size_t count) const;
  /// A number that changes whenever a container is added, changed or removed.
  uint64_t revision() const;

  void AddPod(const std::string& pod_uid, const std::string& pod_id);
  /// False when the pod has no other sandbox left.
  bool RemovePod(const std::string& pod_uid, const std::string& pod_id);
  /// Removes the pod when it has no sandbox but those of `pod_ids` and no container; true then.
  bool RemoveEnded(const std::string& pod_uid, const std::set<std::string>& pod_ids);

  /// The container's latest id; an older one of the same name is forgotten.
  void Add(const ContainerKey& key, const LiveContainer& container);
  /// Does nothing for an id that is no longer the container's latest.
  void MarkStarted(const ContainerKey& key, const std::string& id);
  void Remove(const ContainerKey& key, const std::string& id);

  /// Replaces everything with what a synchronization told, but for the pods of the UIDs in `kept`:
  /// they stay, also when none of their sandboxes is known.
  void Reset(std::map<std::string, std::set<std::string>> pod_ids_by_uid,
             std::map<ContainerKey, LiveContainer> containers,
             const std::set<std::string>& kept = {});

 private:
  mutable Mutex mutex_;
  bool synchronized_ QRM_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::set<std::string>> pods_ QRM_GUARDED_BY(mutex_);
  std::map<ContainerKey, LiveContainer> containers_ QRM_GUARDED_BY(mutex_);
  uint64_t revision_ QRM_GUARDED_BY(mutex_) = 0;
};

}  // namespace qrm::manager
