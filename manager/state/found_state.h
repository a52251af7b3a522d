// Reads and repairs the state that a start finds on disk.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/store.h"
#include "topology/machine.h"

namespace qrm::manager {

/// The plugins that `state` knows, by their resources: those that gave its allocations, and those
/// that have yet to hear of removals.
std::set<std::string> ResourcesOf(const checkpoint::NodeState& state);

/// Repairs what was found so that it fits the machine, in `opened` and on disk. Returns all repairs
/// with those of the database, one sentence each.
std::vector<std::string> Repair(checkpoint::OpenedStore& opened, const Machine& machine);

}  // namespace qrm::manager
