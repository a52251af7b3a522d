// Reads and repairs the state that qrmd finds on disk at its start.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/store.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The resources of the plugins that `state` names: plugins with allocations, and plugins that must
/// still be notified of removals.
std::set<std::string> ResourcesOf(const checkpoint::NodeState& state);

/// Repairs the state in `opened` and on disk so that it fits the machine. Returns all repairs, also
/// those of the database, one sentence each.
std::vector<std::string> Repair(checkpoint::OpenedStore& opened, const Machine& machine);

}  // namespace qrm::manager
