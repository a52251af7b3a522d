// Keeps the latest commits in their order.
#include "manager/admission/commit_times.h"

#include <algorithm>

namespace qrm::manager {

void CommitTimes::Note(const ContainerKey& key, Time decided, std::chrono::nanoseconds took) {
  const MutexLock lock(mutex_);
  if (entries_.size() == capacity_) {
    entries_.pop_front();
  }
  entries_.push_back({key, decided, took});
}

std::optional<std::chrono::nanoseconds> CommitTimes::Find(const ContainerKey& key,
                                                          Time decided) const {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
    return entry.decided == decided && entry.key == key;
  });
  return found == entries_.rend() ? std::nullopt : std::optional(found->took);
}

}  // namespace qrm::manager
