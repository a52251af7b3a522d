// Finds allocations of CPUs and NUMA nodes that the machine no longer has.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The repair that makes a state fit the machine.
struct MachineFit {
  checkpoint::Change change;         ///< empty when all fits
  std::vector<std::string> repairs;  ///< one sentence for each allocation that goes
};

/// Finds the allocations of `state` that name CPUs or NUMA nodes which `machine` does not have, as
/// after a restart with less of them. They go from the records: a container that is created again
/// is placed anew, and one that runs gets what its plugin makes of it in the next reconcile.
MachineFit FitToMachine(const checkpoint::NodeState& state, const Machine& machine);

}  // namespace qrm::manager
