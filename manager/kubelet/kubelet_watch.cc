// Publishes the policies that the state files last had.
#include "manager/kubelet/kubelet_watch.h"

#include "api/base/log.h"

namespace qrm::manager {
namespace {

constexpr int kPatientLooks =
    60;  // 5 minutes of housekeeping, as long as kubelet's longest back-off

}  // namespace

KubeletWatch::News KubeletWatch::Look() {
  const std::vector<std::string> seen = policy_.Conflicts();
  {
    const MutexLock lock(mutex_);
    if (seen == conflicts_) {
      return TellsOutdated() ? News::kOutdated : News::kNone;
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

bool KubeletWatch::TellsOutdated() {
  if (!policy_.outdated()) {
    outdated_looks_ = 0;
    return false;
  }
  ++outdated_looks_;
  return !stands_aside_ || outdated_looks_ >= kPatientLooks;
}

std::vector<std::string> KubeletWatch::conflicts() const {
  const MutexLock lock(mutex_);
  return conflicts_;
}

}  // namespace qrm::manager
