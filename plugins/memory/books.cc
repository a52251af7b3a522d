// Enters all bindings into the flows of their types.
#include "plugins/memory/books.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace qrm::memory {
namespace {

/// The reserved memory of each node of the machine.
std::map<int, MemoryBytes> ReservedOf(const Machine& machine, const MemoryPluginConfig& config) {
  std::map<int, MemoryBytes> reserved;
  for (const NumaNode& node : machine.nodes()) {
    const auto found = config.reserved_bytes.find(node.id);
    reserved[node.id] = found == config.reserved_bytes.end()
                            ? MemoryBytes{{kOrdinaryMemory, config.reserved_bytes_per_node}}
                            : found->second;
  }
  return reserved;
}

uint64_t SumOf(const NodeBytes& parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0},
                         [](uint64_t sum, const auto& part) { return sum + part.second; });
}

MemoryFlows FlowsOf(const MemoryTable& table) {
  std::map<std::string, NodeBytes> free;
  for (const auto& [id, node] : table) {
    for (const auto& [type, amounts] : node.types) {
      free[type][id] = amounts.free;
    }
  }
  MemoryFlows flows;
  for (const auto& [type, bytes] : free) {
    flows.emplace(type, MemoryFlow(bytes));
  }
  return flows;
}

}  // namespace

MemoryTable UnusedTable(const Machine& machine, const MemoryPluginConfig& config) {
  return UnusedMemory(machine, ReservedOf(machine, config));
}

Books::Books(const View& view)
    : table_(view.unused != nullptr ? *view.unused : UnusedTable(view.machine, view.config)) {
  std::vector<Held> all;
  for (const auto& [key, binding] : view.bindings) {
    for (const MemoryBlock& block : binding.blocks) {
      if (binding.by_rule && !HoldsOnOneNode(binding, block)) {
        all.push_back(HoldByRule(key, binding, block));
      }
    }
  }
  for (const auto& [key, binding] : view.bindings) {
    for (const MemoryBlock& block : binding.blocks) {
      if (!binding.by_rule) {
        all.push_back(HoldByStatic(block));
      }
    }
  }
  flows_ = FlowsOf(table_);
  for (const Held& held : all) {
    Enter(held);
  }
  ShowWhatMoved();
}

/// Handles the most common case: ordinary memory of one node that still has what it gave. Such a
/// container never makes way. Returns false, and holds nothing, in other cases.
bool Books::HoldsOnOneNode(const Binding& binding, const MemoryBlock& block) {
  if (block.type != kOrdinaryMemory || block.nodes.Count() != 1) {
    return false;
  }
  const int node = block.nodes.First();
  const auto given = binding.bytes_by_node.find(node);
  const auto here = table_.find(node);
  if (given == binding.bytes_by_node.end() || here == table_.end() ||
      here->second.types.at(kOrdinaryMemory).free < given->second) {
    return false;
  }
  HoldOnNode(node, kOrdinaryMemory, given->second, table_);
  return true;
}

/// The bytes that each node gave; for hugepages without this record, what the nodes have, in order.
Books::Held Books::HoldByRule(const ContainerKey& key, const Binding& binding,
                              const MemoryBlock& block) {
  Held held{.block = &block};
  NodeBytes given;
  if (block.type == kOrdinaryMemory) {
    held.by_rule = &key;
    for (const int node : block.nodes) {
      const auto part = binding.bytes_by_node.find(node);
      given[node] = part == binding.bytes_by_node.end() ? 0 : part->second;
    }
  } else {
    uint64_t left = block.bytes;
    for (const int node : block.nodes) {
      given[node] = std::min(left, Sum(table_, {node}, block.type, &MemoryAmounts::free));
      left -= given[node];
    }
    given[block.nodes.First()] += left;
  }
  for (const auto& [node, bytes] : given) {
    held.parts[node] = HoldOnNode(node, block.type, bytes, table_);
    held.lack[node] = bytes - held.parts[node];
  }
  return held;
}

Books::Held Books::HoldByStatic(const MemoryBlock& block) {
  Held held{.block = &block, .parts = Hold(block, table_)};
  held.lack_of_static = block.bytes - SumOf(held.parts);
  return held;
}

// A container on one node that has its bytes never makes way, and needs no other to do so.
void Books::Enter(const Held& held) {
  const bool lacks = held.lack_of_static > 0 || SumOf(held.lack) > 0;
  const auto flow = flows_.find(held.block->type);
  if (flow == flows_.end() || (held.block->nodes.Count() == 1 && !lacks)) {
    return;
  }
  const std::size_t holder = flow->second.Add(held.block->nodes, held.parts);
  if (held.by_rule != nullptr) {
    by_rule_.push_back({*held.by_rule, holder});
  }
  flow->second.Grow(holder, held.lack_of_static);
  for (const auto& [node, bytes] : held.lack) {
    MoveLack(held.block->type, holder, node, bytes);
  }
}

/// Moves bytes that `node` gave and lost to other nodes, as far as these have room or others make
/// way.
void Books::MoveLack(const std::string& type, std::size_t holder, int node, uint64_t bytes) {
  const uint64_t moved = flows_.at(type).Grow(holder, bytes);
  const auto counted = table_.at(node).types.find(type);
  if (counted != table_.at(node).types.end()) {
    counted->second.reserved -= moved;
  }
}

void Books::ShowWhatMoved() {
  for (auto& [id, node] : table_) {
    for (auto& [type, amounts] : node.types) {
      const uint64_t free = flows_.at(type).Free(id);
      amounts.reserved += amounts.free - free;
      amounts.free = free;
    }
  }
}

bool Books::Fit(const std::vector<MemoryBlock>& blocks) const {
  const bool each = std::ranges::all_of(blocks, [this](const MemoryBlock& block) {
    const auto flow = flows_.find(block.type);
    return block.bytes == 0 ||
           (flow != flows_.end() && flow->second.Fits(block.nodes, block.bytes));
  });
  const auto is_ordinary = [](const MemoryBlock& block) { return block.type == kOrdinaryMemory; };
  if (!each || std::ranges::count_if(blocks, is_ordinary) < 2) {
    return each;
  }
  // Each block of an even split fits by itself; others may have to make way for several blocks.
  MemoryFlow tried = flows_.at(kOrdinaryMemory);
  return std::ranges::all_of(blocks, [&](const MemoryBlock& block) {
    return !is_ordinary(block) || tried.Take(block.nodes, block.bytes).has_value();
  });
}

NodeBytes Books::Take(const ContainerKey& key, const std::vector<MemoryBlock>& blocks) {
  NodeBytes ordinary;
  for (const MemoryBlock& block : blocks) {
    const auto flow = flows_.find(block.type);
    const auto holder =
        flow == flows_.end() ? std::nullopt : flow->second.Take(block.nodes, block.bytes);
    if (holder.has_value() && block.type == kOrdinaryMemory) {
      ordinary.merge(flow->second.PartsOf(*holder));
      if (block.nodes.Count() > 1) {
        by_rule_.push_back({key, *holder});
      }
    }
  }
  return ordinary;
}

uint64_t Books::Room(const NumaMask& nodes, const std::string& type) const {
  const auto flow = flows_.find(type);
  return flow == flows_.end() ? 0 : flow->second.Room(nodes);
}

std::map<ContainerKey, NodeBytes> Books::Moved(const Bindings& bindings) const {
  std::map<ContainerKey, NodeBytes> moved;
  for (const auto& [key, holder] : by_rule_) {
    NodeBytes parts = flows_.at(kOrdinaryMemory).PartsOf(holder);
    const auto binding = bindings.find(key);
    // Bytes that a node gave and lost stay with it.
    if (binding != bindings.end() && binding->second.bytes_by_node != parts &&
        SumOf(binding->second.bytes_by_node) == SumOf(parts)) {
      moved.emplace(key, std::move(parts));
    }
  }
  return moved;
}

}  // namespace qrm::memory
