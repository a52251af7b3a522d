// How long the disk takes for the state's changes.
#pragma once

#include <optional>

#include "api/base/durations.h"

namespace qrm::manager {

/// The latest write of the state to disk.
struct WritePace {
  std::chrono::steady_clock::time_point begun;
  std::optional<std::chrono::steady_clock::time_point> ended;  ///< none: it is under way

  /// How long it took, if it ended in the minute before `now`, or has taken so far.
  std::chrono::nanoseconds Took(std::chrono::steady_clock::time_point now) const {
    constexpr std::chrono::minutes kRecent{1};
    return ended.has_value() && now - *ended >= kRecent ? std::chrono::nanoseconds(0)
                                                        : ended.value_or(now) - begun;
  }
};

}  // namespace qrm::manager
