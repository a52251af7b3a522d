// Tells whether the daemon's loops still turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/durations.h"
#include "api/base/mutex.h"

namespace qrm::manager {

/// Posts a job to each loop, and looks later whether it has run: a loop that is stuck in a lock, a
/// call or a disk that does not answer has not. Threads: any.
class LoopWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// No job waits for so long for anybody: each wait has a deadline of a few seconds at most.
  static constexpr std::chrono::seconds kLimit{10};

  struct Loop {
    std::string name;
    std::function<void(std::function<void()> job)> post;
  };
  explicit LoopWatch(std::vector<Loop> loops);
  ~LoopWatch();
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;

  /// A sentence on each loop that a job has been waiting for since kLimit; posts a job to each of
  /// the others. Cost: one small job a loop, once the last has run.
  std::vector<std::string> Look(Time now);

 private:
  struct Watched;

  Mutex mutex_;
  std::vector<Watched> watched_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
