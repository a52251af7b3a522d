// Whose memory is on which NUMA node: a value, rebuilt from grants.
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

/// The memory of one bound container, and who it is to its neighbours.
struct Binding {
  /// Of ordinary memory: for one that a rule bound, as it is split now; else as it was given.
  std::map<int, uint64_t> bytes_by_node;
  rules::Tenant tenant;
  /// What it holds, each anywhere within its nodes; by the static policy a block of each type.
  std::vector<MemoryBlock> blocks;
  bool by_rule = false;  ///< not by the static policy
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;  ///< position among the pod's (init) containers

  bool operator==(const Binding&) const = default;
};

/// The bound containers. Those that are not bound take no part in the accounting.
using Bindings = std::map<ContainerKey, Binding>;

/// What a decision is made of; all of it outlives the view.
struct View {
  const Machine& machine;
  const MemoryPluginConfig& config;
  const Bindings& bindings;
  const MemoryTable* unused = nullptr;  ///< UnusedTable of these; null: it is counted each time
};

/// `view` of other bindings, which outlive it.
View WithBindings(const View& view, const Bindings& bindings);

/// "container c0 of pod default/db", for messages.
std::string NameOf(const ContainerRequest& request);

/// The NUMA nodes that the container is bound to.
NumaMask NodesOf(const Binding& binding);

/// What every node of the machine has, and what is held of it. Nothing is free of a node that has
/// less than was given.
MemoryTable TableOf(const View& view);

/// What the container asks for, by type. Errors: kInvalidArgument for an amount that is no number
/// of bytes.
StatusOr<MemoryBytes> BytesOf(const ContainerRequest& request);

/// The init containers of the pod of `request` that have ended when it starts, in their order.
std::vector<ContainerKey> EndedInits(const Bindings& bindings, const ContainerRequest& request);

/// What init containers still hold of the memory that they were given, as text: a grant tells only
/// what it was. Empty when there are none.
std::string SaveInits(const Bindings& bindings);

/// What SaveInits saved.
using SavedInits = std::map<ContainerKey, MemoryBytes>;
/// Errors: kDataLoss when `text` cannot be read.
StatusOr<SavedInits> LoadInits(const std::string& text);

/// A rebuilt state, and what had to be repaired, one sentence each.
struct Rebuilt {
  Bindings bindings;
  std::vector<std::string> repairs;
};

/// The state after a restart: containers keep what they were given, but for NUMA nodes that are
/// gone. A node that has less than it gave has nothing free.
Rebuilt Rebuild(const Machine& machine, const MemoryPluginConfig& config, const SavedInits& inits,
                const sdk::Grants& grants);

/// The allocations that are no longer what `grants` say: those on nodes that are gone.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const Bindings& bindings,
                                                              const sdk::Grants& grants);

/// The state as JSON, in the form of the QoS Resource Manager proposal: `machineState` by type and
/// NUMA node, sizes as text, and `pod_resource_entries`. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants);

}  // namespace qrm::memory
