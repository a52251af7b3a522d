// Ends pods of less priority where nothing but an extended resource is short.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/api_client.h"
#include "scheduler/cache/scheduler_cache.h"
#include "scheduler/extender/extender_metrics.h"

namespace qrm::scheduler {

/// kube-scheduler looks for victims with its own filters only. Where these accept a node, and an
/// extended resource rejects it, kube-scheduler finds no victims: this does.
/// Source: kube-scheduler, framework/preemption.
///
/// Threads: that of the client.
class Preemptor : public std::enable_shared_from_this<Preemptor> {
 public:
  /// All outlive it.
  struct Peers {
    cluster::ApiClient& client;
    SchedulerCache& cache;
    ExtenderMetrics& metrics;
  };
  explicit Preemptor(const Peers& peers) : peers_(peers) {}

  /// Nominates `pod` to that of `nodes` whose victims have the least priority, and then are the
  /// fewest, and ends them. Does nothing while pods of one of the nodes end already for it, or when
  /// that helps on no node. Waits for the cache's writer.
  void Preempt(const Pod& pod, const std::vector<std::string>& nodes);

 private:
  void End(const Pod& victim, const std::string& pod, const std::string& node);

  const Peers peers_;
};

}  // namespace qrm::scheduler
