// Names and helps of the extender's metrics.
#include "scheduler/extender/extender_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

namespace qrm::scheduler {

ExtenderMetrics::ExtenderMetrics(prometheus::Registry& registry)
    : calls_(
          prometheus::BuildCounter()
              .Name("qrm_scheduler_calls_total")
              .Help("Calls of kube-scheduler, by verb and `result`: ok, `refused` (no node fits, "
                    "or no longer), failed (kube-scheduler tries again).")
              .Register(registry)),
      seconds_(prometheus::BuildHistogram()
                   .Name("qrm_scheduler_call_duration_seconds")
                   .Help("Time from a call that was read to its answer, by verb.")
                   .Register(registry)),
      wakes_(prometheus::BuildCounter()
                 .Name("qrm_scheduler_wakes_total")
                 .Help("Pods that waited, and that a custom resource had made room for, by result: "
                       "ok, failed (the API server did not take it).")
                 .Register(registry)),
      preempted_(prometheus::BuildCounter()
                     .Name("qrm_scheduler_preempted_pods_total")
                     .Help("Pods that were to end for a pod of more priority, because only an "
                           "extended resource was short, by result: ok, failed.")
                     .Register(registry)) {
  // From the start, so that the first increase of each is seen as one.
  for (const char* call : {"filter", "prioritize", "bind", "preempt"}) {
    for (const char* result : {"ok", "refused", "failed"}) {
      calls_.Add({{"call", call}, {"result", result}});
    }
  }
  for (const char* result : {"ok", "failed"}) {
    wakes_.Add({{"result", result}});
    preempted_.Add({{"result", result}});
  }
}

void ExtenderMetrics::CountPreempted(bool taken) {
  preempted_.Add({{"result", taken ? "ok" : "failed"}}).Increment();
}

void ExtenderMetrics::CountWake(bool taken) {
  wakes_.Add({{"result", taken ? "ok" : "failed"}}).Increment();
}

void ExtenderMetrics::Count(const std::string& call, const std::string& result,
                            std::chrono::nanoseconds took) {
  static const prometheus::Histogram::BucketBoundaries bounds = {
      0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5};
  calls_.Add({{"call", call}, {"result", result}}).Increment();
  seconds_.Add({{"call", call}}, bounds).Observe(std::chrono::duration<double>(took).count());
}

}  // namespace qrm::scheduler
