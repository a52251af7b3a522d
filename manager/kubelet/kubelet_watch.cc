// Publishes the policies that the state files last had.
#include "manager/kubelet/kubelet_watch.h"

#include "api/base/log.h"

namespace qrm::manager {
namespace {

constexpr int kPatientLooks =
    60;  // 5 minutes of housekeeping, as long as kubelet's longest back-off

}  // namespace

KubeletWatch::News KubeletWatch::Look() {
  std::map<std::string, std::string> pinned = policy_.Conflicts();
  pins_ = !pinned.empty();
  {
    const MutexLock lock(mutex_);
    pinned_ = std::move(pinned);
  }
  const std::vector<std::string> before = std::exchange(told_, conflicts());
  if (told_ == before) {
    return TellsOutdated() ? News::kOutdated : News::kNone;
  }
  for (const std::string& conflict : told_) {
    log::Error("standing aside for kubelet", {{"error", conflict}});
  }
  if (!told_.empty()) {
    return News::kNone;
  }
  log::Info("kubelet no longer pins what a plugin serves");
  return News::kFree;
}

bool KubeletWatch::TellsOutdated() {
  if (!policy_.outdated()) {
    outdated_looks_ = 0;
    return false;
  }
  ++outdated_looks_;
  return told_.empty() || outdated_looks_ >= kPatientLooks;
}

std::vector<std::string> KubeletWatch::conflicts() const {
  std::map<std::string, std::string> pinned;
  {
    const MutexLock lock(mutex_);
    pinned = pinned_;
  }
  std::vector<std::string> conflicts;
  for (const auto& [resource, conflict] : pinned) {
    if (is_served_(resource)) {
      conflicts.push_back(conflict);
    }
  }
  return conflicts;
}

}  // namespace qrm::manager
