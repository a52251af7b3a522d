// The NUMA nodes of each container's memory: a value, rebuilt from grants.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/memory/config.h"
#include "plugins/rules/sharing.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"
#include "topology/node_memory.h"

namespace qrm::memory {

/// The memory of one bound container, and what its neighbours must know.
struct Binding {
  /// Ordinary memory: as split now, if a rule bound the container; else as allocated.
  std::map<int, uint64_t> bytes_by_node;
  rules::Tenant tenant;
  /// Its memory, each block anywhere within its nodes; by the static policy a block for each type.
  std::vector<MemoryBlock> blocks;
  bool by_rule = false;  ///< not by the static policy
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;  ///< position among the pod's (init) containers

  bool operator==(const Binding&) const = default;
};

/// The bound containers. Containers that are not bound are not accounted for.
using Bindings = std::map<ContainerKey, Binding>;

/// The input of a decision; all of it outlives the view.
struct View {
  const Machine& machine;
  const MemoryPluginConfig& config;
  const Bindings& bindings;
  const MemoryTable* unused = nullptr;  ///< UnusedTable of these; null: computed each time
};

/// `view` of other bindings, which outlive it.
View WithBindings(const View& view, const Bindings& bindings);

/// The NUMA nodes that the container is bound to.
NumaMask NodesOf(const Binding& binding);

/// The memory of every node of the machine, and how much of it is held. A node with less than its
/// allocations has nothing free.
MemoryTable TableOf(const View& view);

/// What the container requests, by type. Errors: kInvalidArgument for an amount that is not a
/// number of bytes.
StatusOr<MemoryBytes> BytesOf(const ContainerRequest& request);

/// The init containers of the pod of `request` that have ended when it starts, in order.
std::vector<ContainerKey> EndedInits(const Bindings& bindings, const ContainerRequest& request);

/// The memory that init containers still hold, as text: a grant only has their first amount. Empty
/// when there are none.
std::string SaveInits(const Bindings& bindings);

/// What SaveInits saved.
using SavedInits = std::map<ContainerKey, MemoryBytes>;
/// Errors: kDataLoss when `text` cannot be read.
StatusOr<SavedInits> LoadInits(const std::string& text);

/// A rebuilt state, and one sentence for each repair.
struct Rebuilt {
  Bindings bindings;
  std::vector<std::string> repairs;
};

/// The state after a restart: containers keep their memory, except on NUMA nodes that no longer
/// exist. A node with less than its allocations has nothing free.
Rebuilt Rebuild(const Machine& machine, const MemoryPluginConfig& config, const SavedInits& inits,
                const sdk::Grants& grants);

/// The allocations that differ from `grants`, because nodes no longer exist.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const Bindings& bindings,
                                                              const sdk::Grants& grants);

}  // namespace qrm::memory
