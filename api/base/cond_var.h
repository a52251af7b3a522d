// A condition variable for Mutex.
#pragma once

#include <chrono>

#include <pthread.h>
#include <time.h>

#include "api/base/mutex.h"

#define QRM_UNCHECKED QRM_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace qrm {

/// Every wait has a predicate and, except at shutdown, a deadline.
class CondVar {
 public:
  CondVar() = default;
  ~CondVar() { ::pthread_cond_destroy(&condition_); }
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void NotifyAll() { ::pthread_cond_broadcast(&condition_); }

  /// Waits until `ready()` holds. The caller holds `mutex`.
  template <typename Predicate>
  void Wait(Mutex& mutex, Predicate ready) QRM_REQUIRES(mutex) QRM_UNCHECKED {
    while (!ready()) {
      ::pthread_cond_wait(&condition_, &mutex.mutex_);
    }
  }

  /// Waits until `ready()` holds or `deadline` passes; returns the last value of `ready()`.
  template <typename Predicate>
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline, Predicate ready)
      QRM_REQUIRES(mutex) QRM_UNCHECKED {
    const auto left = deadline.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const ::timespec at{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    while (!ready()) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return false;
      }
      ::pthread_cond_clockwait(&condition_, &mutex.mutex_, CLOCK_MONOTONIC, &at);
    }
    return true;
  }

 private:
  ::pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace qrm
