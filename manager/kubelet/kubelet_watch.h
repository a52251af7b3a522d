// Watches kubelet's policies, so that qrmd stands aside while kubelet pins containers itself.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "manager/kubelet/kubelet_policy.h"

namespace qrm::manager {

/// Publishes KubeletPolicy's latest conflicts, and logs each change once.
class KubeletWatch {
 public:
  enum class News { kNone, kFree, kOutdated };

  /// `state_dir` as KubeletPolicy's.
  explicit KubeletWatch(const std::string& state_dir) : policy_(state_dir) {}

  /// kFree when kubelet has stopped pinning since the latest look. kOutdated when only a new mount
  /// of its files would show their current state; while kubelet pins, it replaces the files often,
  /// so this is returned only after many looks. Threads: one at a time. Cost: as
  /// KubeletPolicy::Conflicts.
  News Look();

  /// Threads: any.
  bool stands_aside() const { return stands_aside_; }
  /// One sentence with the remedy for each of kubelet's managers that pins. Threads: any.
  std::vector<std::string> conflicts() const;

 private:
  bool TellsOutdated();

  KubeletPolicy policy_;
  int outdated_looks_ = 0;
  std::atomic<bool> stands_aside_{false};

  mutable Mutex mutex_;
  std::vector<std::string> conflicts_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
