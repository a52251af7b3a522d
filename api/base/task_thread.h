// A thread that runs the tasks posted to it, one after another.
#pragma once

#include <functional>

#include "api/base/hidden.h"

namespace qrm {

/// Runs tasks one after another: on its own thread, or on the thread of a caller that finds it
/// idle.
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
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm
