// The state loop's queue, thread and published state.
#include "manager/state_loop.h"

#include <deque>
#include <thread>
#include <utility>

#include "api/check.h"
#include "api/mutex.h"

namespace qrm::manager {

struct StateLoop::Impl {
  explicit Impl(checkpoint::OpenedStore opened)
      : store(std::move(opened.store)),
        state(std::make_shared<const checkpoint::NodeState>(std::move(opened.state))) {}

  void Run();

  const std::unique_ptr<checkpoint::Store> store;

  Mutex state_mutex;
  std::shared_ptr<const checkpoint::NodeState> state QRM_GUARDED_BY(state_mutex);

  Mutex queue_mutex;
  CondVar queue_changed;
  std::deque<std::function<void()>> queue QRM_GUARDED_BY(queue_mutex);
  bool stopping QRM_GUARDED_BY(queue_mutex) = false;

  std::thread thread;
};

void StateLoop::Impl::Run() {
  for (;;) {
    std::function<void()> work;
    {
      const MutexLock lock(queue_mutex);
      queue_changed.Wait(queue_mutex,
                         [this]() QRM_REQUIRES(queue_mutex) { return stopping || !queue.empty(); });
      if (queue.empty()) {
        return;
      }
      work = std::move(queue.front());
      queue.pop_front();
    }
    work();
  }
}

StateLoop::StateLoop(checkpoint::OpenedStore opened)
    : impl_(std::make_unique<Impl>(std::move(opened))) {
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

StateLoop::~StateLoop() {
  Stop();
}

void StateLoop::Stop() {
  {
    const MutexLock lock(impl_->queue_mutex);
    impl_->stopping = true;
  }
  impl_->queue_changed.NotifyAll();
  if (impl_->thread.joinable()) {
    impl_->thread.join();
  }
}

void StateLoop::Post(std::function<void()> work) {
  {
    const MutexLock lock(impl_->queue_mutex);
    if (impl_->stopping) {
      return;
    }
    impl_->queue.push_back(std::move(work));
  }
  impl_->queue_changed.NotifyAll();
}

std::shared_ptr<const checkpoint::NodeState> StateLoop::Load() const {
  const MutexLock lock(impl_->state_mutex);
  return impl_->state;
}

Status StateLoop::Commit(const checkpoint::Change& change) {
  QRM_CHECK(std::this_thread::get_id() == impl_->thread.get_id());
  QRM_RETURN_IF_ERROR(impl_->store->Commit(change));
  auto next = std::make_shared<const checkpoint::NodeState>(impl_->store->state());
  const MutexLock lock(impl_->state_mutex);
  impl_->state.swap(next);
  return OkStatus();
}

}  // namespace qrm::manager
