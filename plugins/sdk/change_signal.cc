// Calls the listener without holding the lock; to take it away waits for calls in progress.
#include "plugins/sdk/change_signal.h"

#include <utility>

namespace qrm::sdk {

void ChangeSignal::Connect(std::function<void()> listener) {
  const MutexLock lock(mutex_);
  listener_ = listener == nullptr
                  ? nullptr
                  : std::make_shared<const std::function<void()>>(std::move(listener));
  idle_.Wait(mutex_, [this]() QRM_REQUIRES(mutex_) { return calls_ == 0; });
}

void ChangeSignal::Raise() {
  std::shared_ptr<const std::function<void()>> listener;
  {
    const MutexLock lock(mutex_);
    if (listener_ == nullptr) {
      return;
    }
    listener = listener_;
    ++calls_;
  }
  (*listener)();
  {
    const MutexLock lock(mutex_);
    --calls_;
  }
  idle_.NotifyAll();
}

}  // namespace qrm::sdk
