// A thread that runs the tasks posted to it, one after another.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "api/base/mutex.h"

namespace qrm {

/// Runs tasks one after another: on a thread of its own, or on that of whoever finds it idle.
class TaskThread {
 public:
  TaskThread();
  /// Runs what was posted before, then ends the thread.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Threads: any. `task` must not throw.
  void Post(std::function<void()> task);

  /// Runs `task` before it returns, on the caller's thread, when no other task runs or waits: two
  /// changes of threads cost more than most tasks. Posts it otherwise. `task` must not wait for
  /// another one. Threads: any. `task` must not throw.
  void Dispatch(std::function<void()> task);

  /// Runs `task` and waits for it. Threads: any but this one.
  void Run(const std::function<void()>& task);

 private:
  void Loop();
  void Finish();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ QRM_GUARDED_BY(mutex_);
  bool busy_ QRM_GUARDED_BY(mutex_) = false;  ///< tasks are running, wherever
  bool stopping_ QRM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace qrm
