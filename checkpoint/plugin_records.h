// What the state has on record of one plugin, and how to drop it.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// A plugin's recorded allocations, and removals of which it has not been notified.
struct PluginRecords {
  std::string plugin;  ///< the resource that it is registered as
  struct Given {
    ContainerKey key;
    std::string pod_namespace;
    std::string pod_name;
    std::string resource;  ///< the plugin's own, or one that accompanies it
    ResourceAllocation allocation;
  };
  std::vector<Given> allocations;             ///< by pod, container and resource
  std::vector<std::string> pending_removals;  ///< UIDs of pods that are gone

  bool Empty() const { return allocations.empty() && pending_removals.empty(); }
};

/// The records of the plugin of that name.
PluginRecords RecordsOf(const NodeState& state, const std::string& plugin);

/// The change that drops `records`, which are of `state`. A container that holds nothing else is
/// forgotten with them.
Change ChangeWithout(const NodeState& state, const PluginRecords& records);

}  // namespace qrm::checkpoint
