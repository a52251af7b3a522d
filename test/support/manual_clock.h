// A clock that moves only when a test moves it.
#pragma once

#include <chrono>

#include "api/base/clock.h"
#include "api/base/mutex.h"

namespace qrm::test {

/// Begins at the machine's time, so that deadlines from that are in the future. Threads: any.
class ManualClock final : public Clock {
 public:
  std::chrono::system_clock::time_point Now() const override {
    const MutexLock lock(mutex_);
    return now_;
  }
  std::chrono::steady_clock::time_point Steady() const override {
    const MutexLock lock(mutex_);
    return steady_;
  }

  void Advance(std::chrono::milliseconds time) {
    const MutexLock lock(mutex_);
    now_ += time;
    steady_ += time;
  }

 private:
  mutable Mutex mutex_;
  std::chrono::system_clock::time_point now_ QRM_GUARDED_BY(mutex_) =
      std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point steady_ QRM_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::now();
};

}  // namespace qrm::test
