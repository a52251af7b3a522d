// Runs calls in parallel and returns their answers in the order of the calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/base/status.h"

namespace qrm::manager {

/// Takes one answer, on any thread; only the first call counts.
template <typename T>
using AnswerCallback = std::function<void(StatusOr<T>)>;

/// Starts call number `index`; its answer goes to `answer`. Must not block.
template <typename T>
using StartCall = std::function<void(std::size_t index, AnswerCallback<T> answer)>;

namespace fan_out_internal {

inline Status Late() {
  return {StatusCode::kDeadlineExceeded, "cannot wait longer: no answer before the deadline"};
}

/// The shared state of the calls of one fan-out; it lives until the last call has answered.
template <typename T>
class Joint {
 public:
  explicit Joint(std::size_t count) : answers_(count), missing_(count) {}

  /// Takes the answer of call `index`; true when no answers are missing any more.
  bool Take(std::size_t index, StatusOr<T> answer) {
    const MutexLock lock(mutex_);
    if (answers_[index].has_value()) {
      return false;
    }
    answers_[index] = std::move(answer);
    if (--missing_ > 0) {
      return false;
    }
    all_there_.NotifyAll();
    return true;
  }

  void WaitUntil(Deadline deadline) {
    const MutexLock lock(mutex_);
    all_there_.WaitUntil(mutex_, deadline, [this]() QRM_REQUIRES(mutex_) { return missing_ == 0; });
  }

  /// The answers so far. A call without an answer gets `late`, and its later answer is dropped.
  std::vector<StatusOr<T>> Finish(const Status& late) {
    const MutexLock lock(mutex_);
    std::vector<StatusOr<T>> results;
    results.reserve(answers_.size());
    for (std::optional<StatusOr<T>>& answer : answers_) {
      results.push_back(answer.has_value() ? std::move(*answer) : StatusOr<T>(late));
      answer.emplace(late);
    }
    return results;
  }

 private:
  Mutex mutex_;
  CondVar all_there_;
  std::vector<std::optional<StatusOr<T>>> answers_ QRM_GUARDED_BY(mutex_);
  std::size_t missing_ QRM_GUARDED_BY(mutex_);
};

}  // namespace fan_out_internal

/// Calls end by themselves at the deadline with a more precise error, so they get this much longer.
inline constexpr std::chrono::milliseconds kFanOutGrace{50};

/// Calls that run in parallel.
template <typename T>
class ParallelCalls {
 public:
  /// Starts `count` calls.
  ParallelCalls(std::size_t count, const StartCall<T>& start)
      : joint_(std::make_shared<fan_out_internal::Joint<T>>(count)) {
    for (std::size_t index = 0; index < count; ++index) {
      start(index,
            [joint = joint_, index](StatusOr<T> answer) { joint->Take(index, std::move(answer)); });
    }
  }

  /// Their answers, in the order of the calls. A call without an answer after `deadline` and the
  /// grace is kDeadlineExceeded. Call it once.
  ///
  /// Threads: blocks the caller; no lock is held while calls start or run.
  std::vector<StatusOr<T>> Await(Deadline deadline) {
    joint_->WaitUntil(deadline + kFanOutGrace);
    return joint_->Finish(fan_out_internal::Late());
  }

 private:
  const std::shared_ptr<fan_out_internal::Joint<T>> joint_;
};

/// Starts `count` calls and returns their answers; see ParallelCalls.
template <typename T>
std::vector<StatusOr<T>> FanOut(std::size_t count, Deadline deadline, const StartCall<T>& start) {
  return ParallelCalls<T>(count, start).Await(deadline);
}

/// The same without blocking: `done` runs once, on the thread that brings the last answer, or on
/// the caller's if `count` is 0. Each call must have its own deadline.
template <typename T>
void FanOutThen(std::size_t count, const StartCall<T>& start,
                std::function<void(std::vector<StatusOr<T>>)> done) {
  if (count == 0) {
    done({});
    return;
  }
  const auto joint = std::make_shared<fan_out_internal::Joint<T>>(count);
  const auto shared_done = std::make_shared<decltype(done)>(std::move(done));
  for (std::size_t index = 0; index < count; ++index) {
    start(index, [joint, shared_done, index](StatusOr<T> answer) {
      if (joint->Take(index, std::move(answer))) {
        (*shared_done)(joint->Finish(fan_out_internal::Late()));
      }
    });
  }
}

}  // namespace qrm::manager
