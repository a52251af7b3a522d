// What the extender counts.
#pragma once

#include <chrono>
#include <string>

namespace prometheus {
class Counter;
class Histogram;
class Registry;
template <typename T>
class Family;
}  // namespace prometheus

namespace qrm::scheduler {

/// Threads: any.
class ExtenderMetrics {
 public:
  explicit ExtenderMetrics(prometheus::Registry& registry);

  /// `call` is its verb; `result` is "ok", `refused` (no node fits) or "failed".
  void Count(const std::string& call, const std::string& result, std::chrono::nanoseconds took);
  /// A pod that waits was to be woken.
  void CountWake(bool taken);
  /// A pod was to end for a pod of more priority.
  void CountPreempted(bool taken);

 private:
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& wakes_;
  prometheus::Family<prometheus::Counter>& preempted_;
};

}  // namespace qrm::scheduler
