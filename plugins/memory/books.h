// What every node of the machine has of each type of memory, who holds it, and whether more fits.
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

/// What every node has while nobody holds any of it.
MemoryTable UnusedTable(const Machine& machine, const MemoryPluginConfig& config);

/// Keeps for each type of memory that no union of NUMA nodes is promised more than it has, though
/// containers may be bound to overlapping sets of them.
///
/// Threads: one at a time. Units: bytes.
/// Cost:    construction O(containers x nodes), more only when a node has less than was given; the
///          rest as MemoryFlow, where only containers on several nodes count as holders.
class Books {
 public:
  explicit Books(const View& view);

  /// What is free is what nobody holds now, without anybody making way.
  const MemoryTable& table() const { return table_; }

  const MemoryFlows& flows() const { return flows_; }

  /// Whether the nodes have room for all `blocks` together.
  bool Fit(const std::vector<MemoryBlock>& blocks) const;

  /// Notes `blocks`, which fit, as held by `key`; returns what each node gives of ordinary memory.
  NodeBytes Take(const ContainerKey& key, const std::vector<MemoryBlock>& blocks);

  /// The most of `type` that one more container could have within `nodes`.
  uint64_t Room(const NumaMask& nodes, const std::string& type) const;

  /// The parts of ordinary memory of containers that rules bound, where they are no longer what
  /// `bindings` say.
  std::map<ContainerKey, NodeBytes> Moved(const Bindings& bindings) const;

 private:
  /// A block before the flows know it.
  struct Held {
    const ContainerKey* by_rule = nullptr;  ///< whose ordinary memory it is; else null
    const MemoryBlock* block;
    NodeBytes parts;
    NodeBytes lack;               ///< what nodes have given and do not have
    uint64_t lack_of_static = 0;  ///< that kubelet's table does not know
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
  std::vector<ByRule> by_rule_;  // who holds ordinary memory of several nodes
};

}  // namespace qrm::memory
