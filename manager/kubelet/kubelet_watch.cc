// Publishes what the policy files last said.
#include "manager/kubelet/kubelet_watch.h"

#include "api/base/log.h"

namespace qrm::manager {

KubeletWatch::News KubeletWatch::Look() {
  const std::vector<std::string> seen = policy_.Conflicts();
  {
    const MutexLock lock(mutex_);
    if (seen == conflicts_) {
      return News::kNone;
    }
    conflicts_ = seen;
  }
  for (const std::string& conflict : seen) {
    log::Error("standing aside for kubelet", {{"error", conflict}});
  }
  if (!stands_aside_.exchange(!seen.empty()) || !seen.empty()) {
    return News::kNone;
  }
  log::Info("kubelet no longer pins containers");
  return News::kFree;
}

std::vector<std::string> KubeletWatch::conflicts() const {
  const MutexLock lock(mutex_);
  return conflicts_;
}

}  // namespace qrm::manager
