// Keeps the latest update of each container for some seconds.
#include "manager/pods/updates_under_way.h"

#include <utility>

namespace qrm::manager {

using Clock = std::chrono::steady_clock;

void UpdatesUnderWay::Note(const ContainerKey& key, CpuSet cpus) {
  const auto now = Clock::now();
  const MutexLock lock(mutex_);
  std::erase_if(updates_,
                [now](const auto& entry) { return now - entry.second.told_at > kLongest; });
  updates_.insert_or_assign(key, Update{std::move(cpus), now});
}

std::map<ContainerKey, UpdatesUnderWay::Update> UpdatesUnderWay::With(const CpuSet& cpus) const {
  const auto now = Clock::now();
  std::map<ContainerKey, Update> with;
  const MutexLock lock(mutex_);
  for (const auto& [key, update] : updates_) {
    if (now - update.told_at <= kLongest && update.cpus.Intersects(cpus)) {
      with.emplace(key, update);
    }
  }
  return with;
}

void UpdatesUnderWay::Forget(const ContainerKey& key) {
  const MutexLock lock(mutex_);
  updates_.erase(key);
}

}  // namespace qrm::manager
