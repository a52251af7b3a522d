// Calls the listener without holding the lock; removing it waits for calls in progress.
#include "plugins/sdk/change_signal.h"

#include <memory>
#include <utility>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"

namespace qrm::sdk {

struct ChangeSignal::Impl {
  Mutex mutex;
  CondVar idle;
  int calls QRM_GUARDED_BY(mutex) = 0;  ///< of the listener, in progress
  std::shared_ptr<const std::function<void()>> listener QRM_GUARDED_BY(mutex);
};

ChangeSignal::ChangeSignal() : impl_(new Impl) {}

ChangeSignal::~ChangeSignal() = default;

void ChangeSignal::Connect(std::function<void()> listener) {
  const MutexLock lock(impl_->mutex);
  impl_->listener = listener == nullptr
                        ? nullptr
                        : std::make_shared<const std::function<void()>>(std::move(listener));
  impl_->idle.Wait(impl_->mutex, [this]() QRM_REQUIRES(impl_->mutex) { return impl_->calls == 0; });
}

void ChangeSignal::Raise() {
  std::shared_ptr<const std::function<void()>> listener;
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->listener == nullptr) {
      return;
    }
    listener = impl_->listener;
    ++impl_->calls;
  }
  (*listener)();
  {
    const MutexLock lock(impl_->mutex);
    --impl_->calls;
  }
  impl_->idle.NotifyAll();
}

}  // namespace qrm::sdk
