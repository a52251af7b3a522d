// Queues tasks, and lets one thread at a time run them.
#include "api/base/task_thread.h"

#include <future>
#include <memory>
#include <utility>

namespace qrm {

TaskThread::TaskThread() : thread_([this] { Loop(); }) {}

TaskThread::~TaskThread() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void TaskThread::Post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.NotifyAll();
}

void TaskThread::Dispatch(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    if (busy_ || !tasks_.empty()) {
      tasks_.push_back(std::move(task));
      changed_.NotifyAll();
      return;
    }
    busy_ = true;
  }
  task();
  Finish();
}

// Wakes the thread only if there is something to do for it.
void TaskThread::Finish() {
  const MutexLock lock(mutex_);
  busy_ = false;
  if (!tasks_.empty() || stopping_) {
    changed_.NotifyAll();
  }
}

void TaskThread::Run(const std::function<void()>& task) {
  const auto done = std::make_shared<std::promise<void>>();  // outlives the call on both threads
  Post([&task, done] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

void TaskThread::Loop() {
  while (true) {
    std::deque<std::function<void()>> ready;
    {
      const MutexLock lock(mutex_);
      changed_.Wait(mutex_, [this]() QRM_REQUIRES(mutex_) {
        return !busy_ && (stopping_ || !tasks_.empty());
      });
      if (tasks_.empty()) {
        return;
      }
      ready.swap(tasks_);
      busy_ = true;
    }
    for (const std::function<void()>& task : ready) {
      task();
    }
    Finish();
  }
}

}  // namespace qrm
