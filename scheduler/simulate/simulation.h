// Plays a trace through the cache and its filters, and asks the nodes what they think of it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "api/base/status.h"
#include "scheduler/simulate/trace.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler {

struct SimulationOptions {
  /// Types of extended resources that are left out: as a scheduler that knows nothing of them.
  std::set<std::string> without;
  HandleFactories factories = ResourceFactories();
};

/// What a mean over time is made of.
struct OverTime {
  double mean = 0;
  double highest = 0;
};

/// Units: seconds; parts of one.
struct SimulationReport {
  int pods = 0;
  int placed = 0;           ///< that ran on a node
  int waiting = 0;          ///< that had no node at the end
  int bound_by_others = 0;  ///< of `pods`: the trace says where
  /// Placed by us and rejected by the node, which the filters should prevent.
  int false_accepts = 0;
  int refused_others = 0;  ///< bound by others and rejected by the node
  double mean_wait = 0;    ///< of the pods that we placed
  double longest_wait = 0;
  double duration = 0;
  std::map<std::string, OverTime> utilisation;  ///< requested part of allocatable, by resource
  /// The part of the free CPUs that is not on the NUMA node of its node that has most: out of reach
  /// of a pod that needs one NUMA node.
  OverTime fragmentation;
  /// Why pods that waited at the end did not fit, and on how many nodes.
  std::map<std::string, int> reasons;
};

/// A pod goes to the node that scores highest, the first by name among equals; one that fits
/// nowhere waits until something ends. A pod that its node rejects has failed. Errors: of the
/// trace.
StatusOr<SimulationReport> Simulate(const Trace& trace, const SimulationOptions& options);

}  // namespace qrm::scheduler
