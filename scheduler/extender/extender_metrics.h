// What the extender counts.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace qrm::scheduler {

/// Threads: any.
class ExtenderMetrics {
 public:
  explicit ExtenderMetrics(prometheus::Registry& registry);

  /// `call` is its verb; `result` "ok", "refused" (no node, no place) or "failed".
  void Count(const std::string& call, const std::string& result, std::chrono::nanoseconds took);
  /// A pod that waits was to be woken.
  void CountWake(bool taken);

 private:
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& wakes_;
};

}  // namespace qrm::scheduler
