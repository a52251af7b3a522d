// The state loop: its queue, its thread and the published state.
#include "manager/state/state_loop.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "api/base/check.h"
#include "api/base/cond_var.h"
#include "api/base/log.h"
#include "api/base/mutex.h"

namespace qrm::manager {

struct StateLoop::Impl {
  Impl(checkpoint::OpenedStore opened, StateListeners given_listeners)
      : store(std::move(opened.store)),
        listeners(std::move(given_listeners)),
        known(store->Recall().ok()),
        state(std::make_shared<const checkpoint::NodeState>(store->state())) {
    if (known) {
      // It may be full or read-only from the start.
      SetDisk(Write({}, &checkpoint::Store::Remember));
    }
  }

  void Run();
  void Publish();
  StringMap UnrecordedValues();
  Status Write(const checkpoint::Change& change,
               Status (checkpoint::Store::*write)(const checkpoint::Change&));
  bool SetDisk(const Status& written);
  void NoteDisk(const Status& written);
  bool disk_refuses() const {
    const MutexLock lock(disk_mutex);
    return !disk_problem.empty();
  }

  const std::unique_ptr<checkpoint::Store> store;
  const StateListeners listeners;
  std::atomic<bool> known;

  Mutex state_mutex;
  std::shared_ptr<const checkpoint::NodeState> state QRM_GUARDED_BY(state_mutex);

  Mutex values_mutex;
  StringMap values QRM_GUARDED_BY(values_mutex);  // the plugins' current values

  Mutex queue_mutex;
  CondVar queue_changed;
  std::deque<std::function<void()>> queue QRM_GUARDED_BY(queue_mutex);
  bool stopping QRM_GUARDED_BY(queue_mutex) = false;

  mutable Mutex disk_mutex;
  std::string disk_problem QRM_GUARDED_BY(disk_mutex);  // written on the loop only
  WritePace pace QRM_GUARDED_BY(disk_mutex) = {.begun = {}, .ended = {{}}};

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

StringMap StateLoop::Impl::UnrecordedValues() {
  const StringMap& recorded = store->state().plugin_values();
  StringMap unrecorded;
  const MutexLock lock(values_mutex);
  for (const auto& [plugin, value] : values) {
    const auto found = recorded.find(plugin);
    if ((found == recorded.end() ? std::string() : found->second) != value) {
      unrecorded.emplace(plugin, value);
    }
  }
  return unrecorded;
}

// Adds the plugins' values to the change, so that no plugin waits for a separate write.
Status StateLoop::Impl::Write(const checkpoint::Change& change,
                              Status (checkpoint::Store::*write)(const checkpoint::Change&)) {
  StringMap unrecorded = UnrecordedValues();
  WritePace now{.begun = std::chrono::steady_clock::now(), .ended = std::nullopt};
  const auto set_pace = [&] {
    const MutexLock lock(disk_mutex);
    pace = now;
  };
  set_pace();
  Status written;
  if (unrecorded.empty()) {
    written = (*store.*write)(change);
  } else {
    checkpoint::Change with = change;
    with.put_plugin_values = std::move(unrecorded);
    written = (*store.*write)(with);
  }
  now.ended = std::chrono::steady_clock::now();
  set_pace();
  listeners.on_written(now, written, store->repairs());
  return written;
}

// Returns whether the disk rejected changes before.
bool StateLoop::Impl::SetDisk(const Status& written) {
  const std::string problem = MessageOf(written);
  bool refused = false;
  {
    const MutexLock lock(disk_mutex);
    refused = !std::exchange(disk_problem, problem).empty();
  }
  if (!written.ok() && !refused) {
    log::Warning("the disk rejects changes", {{"error", problem}});
  }
  return refused;
}

void StateLoop::Impl::NoteDisk(const Status& written) {
  const bool refused = SetDisk(written);
  if (!written.ok() && !refused) {
    listeners.on_disk_refused(MessageOf(written));
  } else if (refused && written.ok()) {
    log::Info("the disk accepts changes again", {});
    listeners.on_disk_returned();
  }
}

StateLoop::StateLoop(checkpoint::OpenedStore opened, StateListeners listeners)
    : impl_(std::make_unique<Impl>(std::move(opened), std::move(listeners))) {
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
    {
      const MutexLock lock(impl_->values_mutex);
      impl_->values.clear();  // the plugins made them without the recorded values
    }
    impl_->Publish();
    impl_->known = true;
    impl_->listeners.on_recalled(impl_->store->state());
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

std::string StateLoop::disk_problem() const {
  const MutexLock lock(impl_->disk_mutex);
  return impl_->disk_problem;
}

WritePace StateLoop::write_pace() const {
  const MutexLock lock(impl_->disk_mutex);
  return impl_->pace;
}

void StateLoop::KeepValue(const std::string& plugin, std::string value) {
  const MutexLock lock(impl_->values_mutex);
  impl_->values.insert_or_assign(plugin, std::move(value));
}

Status StateLoop::Try() {
  QRM_CHECK(std::this_thread::get_id() == impl_->thread.get_id());
  Status tried = impl_->store->Try();
  if (!tried.ok()) {
    impl_->NoteDisk(tried);
  }
  return tried;
}

Status StateLoop::Commit(const checkpoint::Change& change) {
  QRM_CHECK(std::this_thread::get_id() == impl_->thread.get_id());
  Status written = impl_->Write(change, &checkpoint::Store::Commit);
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
  if (change.Empty() && !impl_->disk_refuses() && impl_->UnrecordedValues().empty()) {
    return OkStatus();
  }
  Status written = impl_->Write(change, &checkpoint::Store::Remember);
  if (written.code() == StatusCode::kInvalidArgument) {
    return written;
  }
  impl_->Publish();
  impl_->NoteDisk(written);
  return OkStatus();
}

}  // namespace qrm::manager
