// Queues tasks, and lets one thread at a time run them.
#include "api/base/task_thread.h"

#include <deque>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"

namespace qrm {

struct TaskThread::Impl {
  void Loop();
  void Finish();

  Mutex mutex;
  CondVar changed;
  std::deque<std::function<void()>> tasks QRM_GUARDED_BY(mutex);
  bool busy QRM_GUARDED_BY(mutex) = false;  ///< tasks are running, wherever
  bool stopping QRM_GUARDED_BY(mutex) = false;
  std::thread thread{[this] { Loop(); }};
};

TaskThread::TaskThread() : impl_(new Impl) {}

TaskThread::~TaskThread() {
  {
    const MutexLock lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.NotifyAll();
  impl_->thread.join();
}

void TaskThread::Post(std::function<void()> task) {
  {
    const MutexLock lock(impl_->mutex);
    impl_->tasks.push_back(std::move(task));
  }
  impl_->changed.NotifyAll();
}

void TaskThread::Dispatch(std::function<void()> task) {
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->busy || !impl_->tasks.empty()) {
      impl_->tasks.push_back(std::move(task));
      impl_->changed.NotifyAll();
      return;
    }
    impl_->busy = true;
  }
  task();
  impl_->Finish();
}

// Wakes the thread only if there is something to do for it.
void TaskThread::Impl::Finish() {
  const MutexLock lock(mutex);
  busy = false;
  if (!tasks.empty() || stopping) {
    changed.NotifyAll();
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

void TaskThread::Impl::Loop() {
  while (true) {
    std::deque<std::function<void()>> ready;
    {
      const MutexLock lock(mutex);
      changed.Wait(mutex,
                   [this]() QRM_REQUIRES(mutex) { return !busy && (stopping || !tasks.empty()); });
      if (tasks.empty()) {
        return;
      }
      ready.swap(tasks);
      busy = true;
    }
    for (const std::function<void()>& task : ready) {
      task();
    }
    Finish();
  }
}

}  // namespace qrm
