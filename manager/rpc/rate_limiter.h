// Limits how often each caller may call.
#pragma once

#include <cstddef>
#include <map>

#include "api/base/durations.h"
#include "api/base/mutex.h"

namespace qrm::manager {

/// Allows each caller `qps` calls a second on average and `burst` calls at once.
/// `Key` identifies a caller and has an order. Threads: any.
template <typename Key>
class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `qps` and `burst` are at least 1.
  RateLimiter(int qps, int burst)
      : interval_(std::chrono::nanoseconds(std::chrono::seconds(1)) / qps),
        slack_(interval_ * (burst - 1)) {}

  /// False when `caller` is too fast. Cost: O(log callers). Whenever the number of callers has
  /// doubled, callers without a recent call are forgotten.
  bool Allow(const Key& caller, Time now) {
    const MutexLock lock(mutex_);
    if (due_.size() >= forget_at_) {
      std::erase_if(due_, [now](const auto& entry) { return entry.second <= now; });
      forget_at_ = due_.size() < kFirstForget / 2 ? kFirstForget : 2 * due_.size();
    }
    Time& due = due_.try_emplace(caller, now).first->second;
    if (due - slack_ > now) {
      return false;
    }
    due = (due < now ? now : due) + interval_;
    return true;
  }

  std::size_t callers() const {
    const MutexLock lock(mutex_);
    return due_.size();
  }

 private:
  static constexpr std::size_t kFirstForget = 64;

  const std::chrono::nanoseconds interval_;
  const std::chrono::nanoseconds slack_;
  mutable Mutex mutex_;
  /// When a caller at the exact average rate would call next; a burst runs ahead of it by slack_.
  std::map<Key, Time> due_ QRM_GUARDED_BY(mutex_);
  std::size_t forget_at_ QRM_GUARDED_BY(mutex_) = kFirstForget;
};

}  // namespace qrm::manager
