// Publishes what the policy files last said.
#include "manager/kubelet/kubelet_watch.h"

#include <utility>

#include "api/base/log.h"

namespace qrm::manager {

KubeletWatch::KubeletWatch(const std::string& state_dir, std::function<void()> on_free)
    : policy_(state_dir), on_free_(std::move(on_free)) {}

void KubeletWatch::Look() {
  const std::vector<std::string> seen = policy_.Conflicts();
  {
    const MutexLock lock(mutex_);
    if (seen == conflicts_) {
      return;
    }
    conflicts_ = seen;
  }
  for (const std::string& conflict : seen) {
    log::Error("standing aside for kubelet", {{"error", conflict}});
  }
  if (stands_aside_.exchange(!seen.empty()) && seen.empty()) {
    log::Info("kubelet no longer pins containers");
    on_free_();
  }
}

std::vector<std::string> KubeletWatch::conflicts() const {
  const MutexLock lock(mutex_);
  return conflicts_;
}

}  // namespace qrm::manager
