// The memory of each type on each node, its holders, and whether more fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/memory/state.h"
#include "topology/memory_flow.h"
#include "topology/node_memory.h"

namespace qrm::memory {

/// The memory of each node before any container holds some.
MemoryTable UnusedTable(const Machine& machine, const MemoryPluginConfig& config);

/// Ensures for each type of memory that no union of NUMA nodes is promised more than it has,
/// although containers may be bound to overlapping sets of nodes.
///
/// Threads: one at a time. Units: bytes.
/// Cost: construction O(containers x nodes), more only when a node has less than its allocations;
/// the rest as MemoryFlow, where only containers on several nodes count as holders.
class Books {
 public:
  explicit Books(const View& view);

  /// Free is what no container holds now, before any container makes way.
  const MemoryTable& table() const { return table_; }

  const MemoryFlows& flows() const { return flows_; }

  /// Whether all `blocks` together fit on their nodes.
  bool Fit(const std::vector<MemoryBlock>& blocks) const;

  /// Records `blocks`, which fit, as held by `key`; returns the ordinary memory of each node.
  NodeBytes Take(const ContainerKey& key, const std::vector<MemoryBlock>& blocks);

  /// The most of `type` that another container could get within `nodes`.
  uint64_t Room(const NumaMask& nodes, const std::string& type) const;

  /// The parts of ordinary memory of containers bound by rules, where these differ from `bindings`.
  std::map<ContainerKey, NodeBytes> Moved(const Bindings& bindings) const;

 private:
  /// A block before it is entered into the flows.
  struct Held {
    const ContainerKey* by_rule = nullptr;  ///< the holder of its ordinary memory; else null
    const MemoryBlock* block;
    NodeBytes parts;
    NodeBytes lack;               ///< memory that nodes have given and no longer have
    uint64_t lack_of_static = 0;  ///< the part that kubelet's table does not know
  };
  struct ByRule {
    ContainerKey key;
    std::size_t holder = 0;
  };

  bool HoldsOnOneNode(const Binding& binding, const MemoryBlock& block);
  Held HoldByRule(const ContainerKey& key, const Binding& binding, const MemoryBlock& block);
  Held HoldByStatic(const MemoryBlock& block);
  void Enter(const Held& held);
  void MoveLack(const std::string& type, std::size_t holder, int node, uint64_t bytes);
  void ShowWhatMoved();

  MemoryTable table_;
  MemoryFlows flows_;
  std::vector<ByRule> by_rule_;  // holders of ordinary memory of several nodes
};

}  // namespace qrm::memory
