// Tells whether the daemon's loops still turn.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

  /// A sentence on each loop that a job has been waiting for since kLimit; posts a job to each of
  /// the others. Cost: one small job a loop, once the last has run.
  std::vector<std::string> Look(Time now);

 private:
  struct Watched {
    Loop loop;
    std::optional<Time> posted_at = std::nullopt;      // of the job that has not been seen to run
    std::shared_ptr<std::atomic<bool>> ran = nullptr;  // of that job
  };

  Mutex mutex_;
  std::vector<Watched> watched_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
