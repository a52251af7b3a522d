// Has kube-scheduler try pods again that wait, when there is room for them that they were not tried
// for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "cluster/api_client.h"
#include "scheduler/cache/scheduler_cache.h"
#include "scheduler/extender/extender_metrics.h"
#include "scheduler/extender/messages.h"

namespace qrm::scheduler {

/// Remembers pods that fitted no node. kube-scheduler tries them again when pods or nodes change,
/// but not when a custom resource changes. Then the pods that fit a changed node get another value
/// of an annotation, which wakes only them. kube-scheduler's own try may come before our watch has
/// reported the change, and then fails. A pod that fits by the newer state gets the annotation,
/// too, unless it was tried again within a moment. The longest-waiting pods come first, a few at a
/// time. A pod that was woken without success rests before it is woken again. Pods that were
/// unschedulable before the start, and request a resource, are remembered, too. Pods that were not
/// woken or preempted for within a moment are given to the Preemptor.
///
/// Threads: made, started and destroyed on that of `io`; OnJudged any.
class Waker {
 public:
  struct Options {
    std::chrono::milliseconds period{100};
    std::chrono::milliseconds first_rest{1'000};  ///< doubles with each try without success
    std::chrono::milliseconds most_rest{60'000};
    /// For how long a change of pods or nodes is left to kube-scheduler's own try.
    std::chrono::milliseconds own_try{1'000};
    /// kube-scheduler asks about each pod that waits every five minutes: others are gone.
    std::chrono::milliseconds forgotten{600'000};
    std::size_t most_at_once = 10;  ///< pods that are woken in a period
    int most_checks = 500;          ///< of a pod and a node in a period
    std::size_t most_waiting = 5'000;
    /// Whether pods may end for others now; called on the loop.
    std::function<bool()> may_preempt = [] { return true; };
    std::size_t most_candidates = 32;  ///< nodes on which victims are looked for
    /// Between two looks for victims of a pod: those of the first end meanwhile.
    std::chrono::milliseconds preempt_rest{10'000};
  };
  /// All outlive it.
  struct Peers {
    boost::asio::io_context& io;
    cluster::ApiClient& client;
    SchedulerCache& cache;
    ExtenderMetrics& metrics;
  };
  Waker(const Peers& peers, const Options& options);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void Start();
  /// What `pod` got as an answer, by `snapshot`.
  void OnJudged(const Pod& pod, const SnapshotPtr& snapshot, const FilterAnswer& answer);
  /// kube-scheduler ends pods for it.
  void OnPreempted(const std::string& uid);

  std::size_t waiting() const;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::scheduler
