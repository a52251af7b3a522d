// A store without a disk, and a state loop on it.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "checkpoint/store.h"
#include "manager/state/state_loop.h"

namespace qrm::test {

/// The commits of a MemoryStore and its answers; shared with the test. Threads: any.
class Journal {
 public:
  /// Runs for each commit, before it is answered.
  std::function<void(const checkpoint::Change&)> on_commit = [](const checkpoint::Change&) {};

  void Fail(Status status) {
    const MutexLock lock(mutex_);
    answer_ = std::move(status);
  }
  /// The answer of the store's Recall.
  void Hide(Status status) {
    const MutexLock lock(mutex_);
    recall_ = std::move(status);
  }
  Status Recall() const {
    const MutexLock lock(mutex_);
    return recall_;
  }
  std::size_t commits() const {
    const MutexLock lock(mutex_);
    return changes_.size();
  }
  std::vector<checkpoint::Change> changes() const {
    const MutexLock lock(mutex_);
    return changes_;
  }
  Status Take(const checkpoint::Change& change) {
    on_commit(change);
    const MutexLock lock(mutex_);
    if (answer_.ok() && !change.Empty()) {
      changes_.push_back(change);
    }
    return answer_;
  }

 private:
  mutable Mutex mutex_;
  Status answer_ QRM_GUARDED_BY(mutex_);
  Status recall_ QRM_GUARDED_BY(mutex_);
  std::vector<checkpoint::Change> changes_ QRM_GUARDED_BY(mutex_);
};

class MemoryStore final : public checkpoint::Store {
 public:
  explicit MemoryStore(Journal& journal) : journal_(journal) {}

  Status Commit(const checkpoint::Change& change) override {
    Status taken = journal_.Take(change);
    if (taken.ok()) {
      state_ = state_.With(change);
    }
    return taken;
  }
  Status Remember(const checkpoint::Change& change) override {
    Status taken = change.Empty() ? OkStatus() : journal_.Take(change);
    if (taken.code() != StatusCode::kInvalidArgument) {
      state_ = state_.With(change);
    }
    return taken;
  }
  Status Try() override { return journal_.Take({}); }
  Status Recall() override { return journal_.Recall(); }
  const checkpoint::NodeState& state() const override { return state_; }

 private:
  Journal& journal_;
  checkpoint::NodeState state_;
};

inline checkpoint::OpenedStore OpenMemoryStore(Journal& journal) {
  return {.store = std::make_unique<MemoryStore>(journal)};
}

/// Runs `work` on the state loop, after what was posted before, and returns its result.
template <typename Work>
auto RunOn(manager::StateLoop& state, Work work) {
  std::promise<std::invoke_result_t<Work>> result;
  state.Post([&] {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      work();
      result.set_value();
    } else {
      result.set_value(work());
    }
  });
  return result.get_future().get();
}

/// Waits until everything posted so far has run, and what that posted.
inline void Settle(manager::StateLoop& state) {
  RunOn(state, [] {});
  RunOn(state, [] {});
}

}  // namespace qrm::test
