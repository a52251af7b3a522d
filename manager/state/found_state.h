// Reads and repairs the state that qrmd finds on disk at its start.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "checkpoint/store.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The resources of the plugins that `state` names: plugins with allocations, and plugins that must
/// still be notified of removals.
std::set<std::string> ResourcesOf(const checkpoint::NodeState& state);

/// The repair that makes a state fit the machine.
struct MachineFit {
  checkpoint::Change change;         ///< empty when all allocations fit
  std::vector<std::string> repairs;  ///< one sentence for each removed allocation
};

/// Finds the allocations of `state` with CPUs or NUMA nodes that `machine` does not have, for
/// example after a reboot with fewer CPUs. They are removed from the records. A recreated container
/// gets a new allocation, and a running container gets one from its plugin in the next reconcile.
MachineFit FitToMachine(const checkpoint::NodeState& state, const Machine& machine);

/// Repairs the state in `opened` and on disk so that it fits the machine. Returns all repairs, also
/// those of the database, one sentence each.
std::vector<std::string> Repair(checkpoint::OpenedStore& opened, const Machine& machine);

}  // namespace qrm::manager
