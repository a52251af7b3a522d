// Detects whether kubelet pins containers itself, so that qrmd stands aside while kubelet pins what
// a plugin serves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"

namespace qrm::manager {

/// Reads the state files of kubelet's CPU and memory managers. Kubelet does not start if its state
/// has another policy than its configuration, so the file shows the policy in use.
///
/// Threads: one. Cost: two stat calls; a file is read when it has changed.
/// Source: kubelet's cpu_manager_state and memory_manager_state, "policyName".
class KubeletPolicy {
 public:
  /// `state_dir` is kubelet's root directory; empty: no file is read.
  explicit KubeletPolicy(const std::string& state_dir);

  /// One sentence with the remedy for each manager that is static, by the resource that it pins;
  /// none without a kubelet.
  std::map<std::string, std::string> Conflicts();

  /// Whether the latest Conflicts saw a file that the node has replaced: a file that is mounted by
  /// itself does not change when kubelet replaces it.
  bool outdated() const { return outdated_; }

 private:
  struct Manager {
    std::string resource;
    std::string file;
    std::string word;    ///< the policy that pins
    std::string what;    ///< "CPU", "memory"
    std::string remedy;  ///< the line of kubelet's configuration
    int64_t modified_nanos = -1;
    uint64_t inode = 0;
    std::string policy;
  };
  void Refresh(Manager& manager);

  std::vector<Manager> managers_;
  bool outdated_ = false;
};

/// Publishes KubeletPolicy's latest conflicts, and logs each change once. A manager of kubelet is
/// in conflict with a plugin of its resource only: beside plugins of other resources it may pin.
class KubeletWatch {
 public:
  enum class News { kNone, kFree, kOutdated };

  /// Whether qrmd has a plugin of the resource. Threads: any.
  using IsServed = std::function<bool(const std::string& resource)>;

  /// `state_dir` as KubeletPolicy's.
  KubeletWatch(const std::string& state_dir, IsServed is_served)
      : policy_(state_dir), is_served_(std::move(is_served)) {}

  /// kFree when kubelet has stopped pinning since the latest look. kOutdated when only a new mount
  /// of its files would show their current state; while kubelet pins, it replaces the files often,
  /// so this is returned only after many looks. Threads: one at a time. Cost: as
  /// KubeletPolicy::Conflicts.
  News Look();

  /// Threads: any.
  bool stands_aside() const { return !conflicts().empty(); }
  /// One sentence with the remedy for each of kubelet's managers that pins what a plugin serves.
  /// Threads: any.
  std::vector<std::string> conflicts() const;

 private:
  bool TellsOutdated();

  KubeletPolicy policy_;
  const IsServed is_served_;
  int outdated_looks_ = 0;
  std::vector<std::string> told_;  ///< the conflicts as last logged

  mutable Mutex mutex_;
  std::map<std::string, std::string> pinned_ QRM_GUARDED_BY(mutex_);  ///< by resource
};

}  // namespace qrm::manager
