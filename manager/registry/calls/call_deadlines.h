// Reports calls that last longer than they may.
#pragma once

#include <cstdint>
#include <functional>

#include "api/base/durations.h"
#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// One timer for many deadlines, of which hardly any is ever reached: to watch a call costs a place
/// in a list.
///
/// Threads: any; what expires runs on `io`, not after the destructor has begun on that thread.
class CallDeadlines {
 public:
  /// A deadline that is watched.
  struct Watch {
    std::chrono::steady_clock::time_point deadline;
    uint64_t number = 0;  ///< for those of one moment

    auto operator<=>(const Watch&) const = default;
  };

  /// `io` outlives it.
  explicit CallDeadlines(boost::asio::io_context& io);
  ~CallDeadlines();
  CallDeadlines(const CallDeadlines&) = delete;
  CallDeadlines& operator=(const CallDeadlines&) = delete;

  /// Runs `expire` once `deadline` has passed, unless the watch is ended before.
  Watch Begin(std::chrono::steady_clock::time_point deadline, std::function<void()> expire);
  /// `expire` may still be running when this returns.
  void End(const Watch& watch);

 private:
  struct State;
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
