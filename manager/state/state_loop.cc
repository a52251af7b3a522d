// Implements the state loop: its queue, its thread and the published state.
#include "manager/state/state_loop.h"

#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "api/base/check.h"
#include "api/base/log.h"
#include "api/base/mutex.h"

namespace qrm::manager {

struct StateLoop::Impl {
  Impl(checkpoint::OpenedStore opened, std::function<void()> given_on_disk_returned)
      : store(std::move(opened.store)),
        on_disk_returned(std::move(given_on_disk_returned)),
        known(store->Recall().ok()),
        state(std::make_shared<const checkpoint::NodeState>(store->state())) {}

  void Run();
  void Publish();
  void NoteDisk(const Status& written);

  const std::unique_ptr<checkpoint::Store> store;
  const std::function<void()> on_disk_returned;
  std::atomic<bool> known;

  Mutex state_mutex;
  std::shared_ptr<const checkpoint::NodeState> state QRM_GUARDED_BY(state_mutex);

  Mutex queue_mutex;
  CondVar queue_changed;
  std::deque<std::function<void()>> queue QRM_GUARDED_BY(queue_mutex);
  bool stopping QRM_GUARDED_BY(queue_mutex) = false;

  // Used on the loop only:
  bool disk_refuses = false;
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

void StateLoop::Impl::Publish() {
  auto next = std::make_shared<const checkpoint::NodeState>(store->state());
  const MutexLock lock(state_mutex);
  state.swap(next);
}

void StateLoop::Impl::NoteDisk(const Status& written) {
  const bool refused = std::exchange(disk_refuses, !written.ok());
  if (disk_refuses && !refused) {
    log::Warning("the disk refuses changes", {{"error", MessageOf(written)}});
  } else if (refused && !disk_refuses) {
    log::Info("the disk takes changes again", {});
    on_disk_returned();
  }
}

StateLoop::StateLoop(checkpoint::OpenedStore opened, std::function<void()> on_disk_returned)
    : impl_(std::make_unique<Impl>(std::move(opened), std::move(on_disk_returned))) {
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

Status StateLoop::Recall() {
  QRM_CHECK(std::this_thread::get_id() == impl_->thread.get_id());
  Status recalled = impl_->store->Recall();
  if (recalled.ok() && !impl_->known) {
    impl_->Publish();
    impl_->known = true;
    impl_->NoteDisk(recalled);
  } else if (!recalled.ok()) {
    impl_->known = false;
    impl_->NoteDisk(recalled);
  }
  return recalled;
}

bool StateLoop::known() const {
  return impl_->known;
}

Status StateLoop::Commit(const checkpoint::Change& change) {
  QRM_CHECK(std::this_thread::get_id() == impl_->thread.get_id());
  Status written = impl_->store->Commit(change);
  if (written.ok()) {
    impl_->Publish();
  }
  if (written.code() != StatusCode::kInvalidArgument) {
    impl_->NoteDisk(written);
  }
  return written;
}

Status StateLoop::Remember(const checkpoint::Change& change) {
  QRM_CHECK(std::this_thread::get_id() == impl_->thread.get_id());
  if (change.Empty() && !impl_->disk_refuses) {
    return OkStatus();
  }
  Status written = impl_->store->Remember(change);
  if (written.code() == StatusCode::kInvalidArgument) {
    return written;
  }
  impl_->Publish();
  impl_->NoteDisk(written);
  return OkStatus();
}

}  // namespace qrm::manager
