// Reports calls that exceed their deadlines.
#pragma once

#include <cstdint>
#include <functional>

#include "api/base/durations.h"
#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// One timer for many deadlines. Few deadlines are ever reached, so watching a call costs only an
/// entry in a map.
///
/// Threads: any; expired watches run on `io`, but none after the destructor has begun on that
/// thread.
class CallDeadlines {
 public:
  /// A watched deadline.
  struct Watch {
    std::chrono::steady_clock::time_point deadline;
    uint64_t number = 0;  ///< distinguishes equal deadlines

    auto operator<=>(const Watch&) const = default;
  };

  /// `io` outlives the object.
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
