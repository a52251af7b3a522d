// A mutex with Clang's thread-safety annotations. (absl::Mutex gives false thread-sanitizer reports
// here, and <mutex> weighs too much for each source behind a header.)
#pragma once

#include <pthread.h>

#if defined(__clang__)
#define QRM_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define QRM_THREAD_ATTRIBUTE(x)
#endif

#define QRM_GUARDED_BY(mutex) QRM_THREAD_ATTRIBUTE(guarded_by(mutex))
#define QRM_PT_GUARDED_BY(mutex) QRM_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
#define QRM_REQUIRES(...) QRM_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define QRM_EXCLUDES(...) QRM_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace qrm {

/// A mutex whose guarded members the compiler can check (`QRM_GUARDED_BY`).
class QRM_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  ~Mutex() = default;  // Linux keeps nothing behind it
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() QRM_THREAD_ATTRIBUTE(acquire_capability()) { ::pthread_mutex_lock(&mutex_); }
  void Unlock() QRM_THREAD_ATTRIBUTE(release_capability()) { ::pthread_mutex_unlock(&mutex_); }

 private:
  friend class CondVar;
  ::pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
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

}  // namespace qrm
