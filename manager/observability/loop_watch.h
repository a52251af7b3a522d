// Checks whether the daemon's loops still run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/durations.h"
#include "api/base/mutex.h"

namespace qrm::manager {

/// Posts a job to each loop and checks later whether it has run. A job does not run while its loop
/// is stuck in a lock, a call or a disk that does not answer. Threads: any.
class LoopWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Longer than any job takes: each wait in a job has a deadline of a few seconds at most.
  static constexpr std::chrono::seconds kLimit{10};

  struct Loop {
    std::string name;
    std::function<void(std::function<void()> job)> post;
  };
  explicit LoopWatch(std::vector<Loop> loops);
  ~LoopWatch();
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;

  /// One sentence for each loop whose job has waited for kLimit or longer. Posts a new job to each
  /// loop whose last job has run. Cost: one small job per loop.
  std::vector<std::string> Look(Time now);

 private:
  struct Watched;

  Mutex mutex_;
  std::vector<Watched> watched_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
