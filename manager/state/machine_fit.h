// Finds allocations of CPUs and NUMA nodes that the machine no longer has.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The repair that makes a state fit the machine.
struct MachineFit {
  checkpoint::Change change;         ///< empty when all allocations fit
  std::vector<std::string> repairs;  ///< one sentence for each removed allocation
};

/// Finds the allocations of `state` with CPUs or NUMA nodes that `machine` does not have, for
/// example after a reboot with fewer CPUs. They are removed from the records. A recreated container
/// gets a new allocation, and a running container gets one from its plugin in the next reconcile.
MachineFit FitToMachine(const checkpoint::NodeState& state, const Machine& machine);

}  // namespace qrm::manager
