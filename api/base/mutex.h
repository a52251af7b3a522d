// std::mutex with Clang's thread-safety annotations. (absl::Mutex gives false thread-sanitizer
// reports here.)
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define QRM_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define QRM_THREAD_ATTRIBUTE(x)
#endif

#define QRM_GUARDED_BY(mutex) QRM_THREAD_ATTRIBUTE(guarded_by(mutex))
#define QRM_REQUIRES(...) QRM_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define QRM_EXCLUDES(...) QRM_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

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
class CondVar {
 public:
  void NotifyAll() { condition_.notify_all(); }

  /// Waits until `ready()` holds. The caller holds `mutex`.
  template <typename Predicate>
  void Wait(Mutex& mutex, Predicate ready) QRM_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock, ready);
    lock.release();
  }

  /// Waits until `ready()` holds or `deadline` passes; returns the last value of `ready()`.
  template <typename Predicate>
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline, Predicate ready)
      QRM_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool done = condition_.wait_until(lock, deadline, ready);
    lock.release();
    return done;
  }

 private:
  std::condition_variable condition_;
};

}  // namespace qrm
