// Keeps announced specs in order of age.
#include "manager/demand/spec_source.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace qrm::manager {

void AnnouncedPods::Add(PodSpec spec) {
  const MutexLock lock(mutex_);
  ++revision_;
  const auto is_same = [&spec](const PodSpecPtr& pod) { return pod->uid == spec.uid; };
  pods_.erase(std::remove_if(pods_.begin(), pods_.end(), is_same), pods_.end());
  pods_.push_back(std::make_shared<const PodSpec>(std::move(spec)));
  if (pods_.size() > kMaxPods) {
    pods_.erase(pods_.begin());
  }
}

uint64_t AnnouncedPods::revision() const {
  const MutexLock lock(mutex_);
  return revision_;
}

PodSpecPtr AnnouncedPods::Find(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(pods_.begin(), pods_.end(),
                                  [&uid](const PodSpecPtr& pod) { return pod->uid == uid; });
  return found == pods_.end() ? nullptr : *found;
}

}  // namespace qrm::manager
