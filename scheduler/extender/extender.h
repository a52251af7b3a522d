// Answers kube-scheduler: which nodes fit, how well, and binds.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "api/base/status.h"
#include "scheduler/cache/scheduler_cache.h"
#include "scheduler/extender/binder.h"
#include "scheduler/extender/extender_metrics.h"
#include "scheduler/extender/messages.h"
#include "scheduler/extender/waker.h"

namespace qrm::scheduler {

/// The verbs of the extender's protocol. Each answer is JSON; what we cannot judge is an error, by
/// which kube-scheduler tries again by itself, and never an accept.
///
/// Threads: any; each call works on the caller's.
/// Source: kube-scheduler, scheduler extender, extender/v1.
class Extender {
 public:
  struct Options {
    std::chrono::milliseconds call_timeout{500};  ///< of filter, prioritize and preempt
    /// How long a call waits until we have seen the pod as kube-scheduler has.
    std::chrono::milliseconds catch_up{50};
  };
  /// Asked before each call: whether what we know is what there is.
  using MayJudge = std::function<Status()>;
  using Reply = std::function<void(std::string json)>;

  /// All outlive it.
  struct Peers {
    SchedulerCache& cache;
    Binder& binder;
    ExtenderMetrics& metrics;
    Waker& waker;
  };
  Extender(const Peers& peers, MayJudge may_judge, const Options& options);

  /// `call`: where the thread is in the code of resources; Preempt works on the cache's writer.
  std::string Filter(const std::string& body, HandleCall& call);
  std::string Prioritize(const std::string& body, HandleCall& call);
  std::string Preempt(const std::string& body);
  /// `reply` runs once, when the API server has answered or the time is over.
  void Bind(const std::string& body, const Reply& reply);

 private:
  using Clock = std::chrono::steady_clock;

  StatusOr<FilterAnswer> Judge(const std::string& body, HandleCall& call);
  StatusOr<std::vector<NodeScore>> Score(const std::string& body, HandleCall& call);
  StatusOr<std::map<std::string, PreemptQuestion::Victims>> KeepUseful(const std::string& body);
  /// Strips `pod` as the cache does its pods: it is kept while it waits.
  StatusOr<SnapshotPtr> SnapshotFor(Pod& pod);
  Status CheckTime(Clock::time_point deadline) const;
  void Count(const char* call, const Status& outcome, Clock::time_point begun);

  SchedulerCache& cache_;
  Binder& binder_;
  ExtenderMetrics& metrics_;
  Waker& waker_;
  const MayJudge may_judge_;
  const Options options_;
};

}  // namespace qrm::scheduler
