// Counts calls in and out, and stops.
#include "api/rpc/calls_in_flight.h"

#include <map>
#include <utility>
#include <vector>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"

namespace qrm::rpc {

struct CallsInFlight::Impl {
  mutable Mutex mutex;
  CondVar empty;
  bool stopped QRM_GUARDED_BY(mutex) = false;
  Id next_id QRM_GUARDED_BY(mutex) = 1;
  std::map<Id, std::function<void()>> cancels QRM_GUARDED_BY(mutex);
};

CallsInFlight::CallsInFlight() : impl_(new Impl) {}

CallsInFlight::~CallsInFlight() = default;

std::optional<CallsInFlight::Id> CallsInFlight::Enter(std::function<void()> cancel) {
  const MutexLock lock(impl_->mutex);
  if (impl_->stopped) {
    return std::nullopt;
  }
  const Id id = impl_->next_id++;
  impl_->cancels.emplace(id, std::move(cancel));
  return id;
}

void CallsInFlight::Leave(Id id) {
  std::function<void()> cancel;  // destroyed after the lock: it may hold the call's last reference
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->cancels.find(id);
  cancel = std::move(found->second);
  impl_->cancels.erase(found);
  if (impl_->cancels.empty()) {
    impl_->empty.NotifyAll();
  }
}

bool CallsInFlight::stopped() const {
  const MutexLock lock(impl_->mutex);
  return impl_->stopped;
}

void CallsInFlight::StopAndWait() {
  std::vector<std::function<void()>> cancels;
  {
    const MutexLock lock(impl_->mutex);
    impl_->stopped = true;
    for (const auto& [id, cancel] : impl_->cancels) {
      cancels.push_back(cancel);
    }
  }
  for (const auto& cancel : cancels) {
    cancel();
  }
  const MutexLock lock(impl_->mutex);
  impl_->empty.Wait(impl_->mutex,
                    [this]() QRM_REQUIRES(impl_->mutex) { return impl_->cancels.empty(); });
}

}  // namespace qrm::rpc
