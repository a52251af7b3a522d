// Watches kubelet's policies, so that qrmd stands aside while kubelet pins what a plugin serves.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "manager/kubelet/kubelet_policy.h"

namespace qrm::manager {

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
  bool stands_aside() const { return pins_ && !conflicts().empty(); }
  /// One sentence with the remedy for each of kubelet's managers that pins what a plugin serves.
  /// Threads: any.
  std::vector<std::string> conflicts() const;

 private:
  bool TellsOutdated();

  KubeletPolicy policy_;
  const IsServed is_served_;
  int outdated_looks_ = 0;
  std::vector<std::string> told_;  ///< the conflicts as last logged
  std::atomic<bool> pins_{false};  ///< whether pinned_ has any

  mutable Mutex mutex_;
  std::map<std::string, std::string> pinned_ QRM_GUARDED_BY(mutex_);  ///< by resource
};

}  // namespace qrm::manager
