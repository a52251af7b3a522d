// Counts calls in and out, and stops.
#include "api/rpc/calls_in_flight.h"

#include <utility>
#include <vector>

namespace qrm::rpc {

std::optional<CallsInFlight::Id> CallsInFlight::Enter(std::function<void()> cancel) {
  const MutexLock lock(mutex_);
  if (stopped_) {
    return std::nullopt;
  }
  const Id id = next_id_++;
  cancels_.emplace(id, std::move(cancel));
  return id;
}

void CallsInFlight::Leave(Id id) {
  std::function<void()> cancel;  // destroyed after the lock: it may hold the call's last reference
  const MutexLock lock(mutex_);
  const auto found = cancels_.find(id);
  cancel = std::move(found->second);
  cancels_.erase(found);
  if (cancels_.empty()) {
    empty_.NotifyAll();
  }
}

bool CallsInFlight::stopped() const {
  const MutexLock lock(mutex_);
  return stopped_;
}

void CallsInFlight::StopAndWait() {
  std::vector<std::function<void()>> cancels;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (const auto& [id, cancel] : cancels_) {
      cancels.push_back(cancel);
    }
  }
  for (const auto& cancel : cancels) {
    cancel();
  }
  const MutexLock lock(mutex_);
  empty_.Wait(mutex_, [this]() QRM_REQUIRES(mutex_) { return cancels_.empty(); });
}

}  // namespace qrm::rpc
