// Whose memory is on which NUMA node: a value, rebuilt from grants.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/memory/config.h"
#include "plugins/placement/sharing.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::memory {

/// The memory of one bound container, and who it is to its neighbours.
struct Binding {
  std::map<int, uint64_t> bytes_by_node;
  placement::Tenant tenant;

  bool operator==(const Binding&) const = default;
};

/// The bound containers. Those that are not bound take no part in the accounting.
using MemoryState = std::map<ContainerKey, Binding>;

/// What a decision is made of; all of it outlives the view.
struct View {
  const Machine& machine;
  const MemoryPluginConfig& config;
  const MemoryState& state;
};

/// The books of one NUMA node, in bytes. `free` is 0 when a shrunken node has less than was given.
struct NodeBooks {
  uint64_t total = 0;
  uint64_t system_reserved = 0;
  uint64_t allocatable = 0;
  uint64_t allocated = 0;
  uint64_t free = 0;
};

/// The books of every node of the machine.
std::map<int, NodeBooks> BooksOf(const View& view);

/// A rebuilt state, and what had to be repaired, one sentence each.
struct Rebuilt {
  MemoryState state;
  std::vector<std::string> repairs;
};

/// The state after a restart: containers keep what they were given, but for NUMA nodes that are
/// gone. A node that has less than it gave has nothing free.
Rebuilt Rebuild(const Machine& machine, const MemoryPluginConfig& config,
                const sdk::Grants& grants);

/// The allocations that are no longer what `grants` say: those on nodes that are gone.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const MemoryState& state,
                                                              const sdk::Grants& grants);

/// The state as JSON, in the form of the QoS Resource Manager proposal: `machineState` by NUMA
/// node, sizes as text, and `pod_resource_entries`. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants);

}  // namespace qrm::memory
