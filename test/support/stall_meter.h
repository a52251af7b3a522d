// Separates a test's time from the machine's stalls.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "api/base/mutex.h"

namespace qrm::test {

/// Notes when a CPU did not run this machine, as while a host runs other virtual machines. A thread
/// on each CPU, with the highest real-time priority that this process may have, wakes every two
/// milliseconds and sees by how much it is late.
class StallMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  StallMeter() {
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed)) {
        threads_.emplace_back([this, cpu](const std::stop_token& stop) { Watch(cpu, stop); });
      }
    }
  }
  ~StallMeter() = default;
  StallMeter(const StallMeter&) = delete;
  StallMeter& operator=(const StallMeter&) = delete;

  /// How long any CPU was stalled between `begin` and `end`; stalls at the same time count once.
  std::chrono::nanoseconds Within(Time begin, Time end) const {
    std::vector<std::pair<Time, Time>> stalls;
    {
      const MutexLock lock(mutex_);
      stalls = stalls_;
    }
    std::sort(stalls.begin(), stalls.end());
    std::chrono::nanoseconds total{0};
    for (const auto& [from, to] : stalls) {
      const Time last = std::min(to, end);
      begin = std::max(begin, from);
      if (begin < last) {
        total += last - begin;
        begin = last;
      }
    }
    return total;
  }

 private:
  static constexpr std::chrono::milliseconds kPeriod{2};
  static constexpr std::chrono::milliseconds kLate{5};

  void Watch(int cpu, const std::stop_token& stop) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(cpu), &only);
    ::pthread_setaffinity_np(::pthread_self(), sizeof(only), &only);
    const sched_param priority{.sched_priority = 2};  // one more than BeforeOthers gives
    ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority);
    while (!stop.stop_requested()) {
      const Time due = std::chrono::steady_clock::now() + kPeriod;
      std::this_thread::sleep_until(due);
      const Time woken = std::chrono::steady_clock::now();
      if (woken - due > kLate) {
        const MutexLock lock(mutex_);
        stalls_.emplace_back(due, woken);
      }
    }
  }

  mutable Mutex mutex_;
  std::vector<std::pair<Time, Time>> stalls_ QRM_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

}  // namespace qrm::test
