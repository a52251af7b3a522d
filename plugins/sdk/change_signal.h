// Carries "my allocations changed" from a plugin to whoever tells the manager.
#pragma once

#include <functional>
#include <memory>

#include "api/base/mutex.h"

namespace qrm::sdk {

/// A signal with at most one listener. Threads: any.
class ChangeSignal {
 public:
  /// `listener`, which must not block and may be empty, gets every signal from now on; the former
  /// one is not called any more when this returns. Not to be called by a listener.
  void Connect(std::function<void()> listener);

  void Raise();

 private:
  Mutex mutex_;
  CondVar idle_;
  int calls_ QRM_GUARDED_BY(mutex_) = 0;  ///< of the listener, in progress
  std::shared_ptr<const std::function<void()>> listener_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::sdk
