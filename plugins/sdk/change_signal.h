// The signal "my allocations changed", from a plugin to the code that notifies the manager.
#pragma once

#include <functional>

#include "api/base/hidden.h"

namespace qrm::sdk {

/// A signal with at most one listener. Threads: any.
class ChangeSignal {
 public:
  ChangeSignal();
  ~ChangeSignal();
  ChangeSignal(const ChangeSignal&) = delete;
  ChangeSignal& operator=(const ChangeSignal&) = delete;

  /// `listener` gets every signal from now on. It must not block and may be empty. The previous
  /// listener is not called after this returns. A listener must not call this function.
  void Connect(std::function<void()> listener);

  void Raise();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::sdk
