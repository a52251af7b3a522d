// Carries "my allocations changed" from a plugin to whoever tells the manager.
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

  /// `listener`, which must not block and may be empty, gets every signal from now on; the former
  /// one is not called any more when this returns. Not to be called by a listener.
  void Connect(std::function<void()> listener);

  void Raise();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::sdk
