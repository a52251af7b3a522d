// A state that a test sets instead of a loop that commits it.
#pragma once

#include <memory>
#include <utility>

#include "api/base/mutex.h"
#include "manager/state/state_loop.h"

namespace qrm::test {

class FakeSnapshots final : public manager::Snapshots {
 public:
  std::shared_ptr<const checkpoint::NodeState> Load() const override {
    const MutexLock lock(mutex_);
    return state_;
  }

  /// Publishes the state after `change`.
  void Apply(const checkpoint::Change& change) {
    auto next = std::make_shared<const checkpoint::NodeState>(Load()->With(change));
    const MutexLock lock(mutex_);
    state_ = std::move(next);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const checkpoint::NodeState> state_ QRM_GUARDED_BY(mutex_) =
      std::make_shared<const checkpoint::NodeState>();
};

}  // namespace qrm::test
