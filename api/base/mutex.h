// std::mutex with Clang's thread-safety annotations. (absl::Mutex gives false thread-sanitizer
// reports here.)
#pragma once

#include <mutex>

#include <pthread.h>
#include <time.h>

#include "api/base/durations.h"

#if defined(__clang__)
#define QRM_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define QRM_THREAD_ATTRIBUTE(x)
#endif

#define QRM_GUARDED_BY(mutex) QRM_THREAD_ATTRIBUTE(guarded_by(mutex))
#define QRM_REQUIRES(...) QRM_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define QRM_EXCLUDES(...) QRM_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define QRM_UNCHECKED QRM_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace qrm {

/// A mutex whose guarded members the compiler can check (`QRM_GUARDED_BY`).
class QRM_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void Lock() QRM_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void Unlock() QRM_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds `mutex` for the lifetime of the lock. Never held across an RPC, a disk write or a
/// callback.
class QRM_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) QRM_THREAD_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() QRM_THREAD_ATTRIBUTE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for `Mutex`; every wait has a predicate and, but for shutdown, a deadline.
/// (<condition_variable> is 56,000 lines for each source behind a header.)
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
      ::pthread_cond_wait(&condition_, mutex.mutex_.native_handle());
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
      ::pthread_cond_clockwait(&condition_, mutex.mutex_.native_handle(), CLOCK_MONOTONIC, &at);
    }
    return true;
  }

 private:
  ::pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace qrm
