// Moves bytes between free and held, under either policy.
#include "topology/memory_accounting.h"

#include <algorithm>
#include <utility>

namespace qrm {
namespace {

const MemoryAmounts* FindAmounts(const std::map<int, NodeMemory>& nodes, int node,
                                 const std::string& type) {
  const auto memory = nodes.find(node);
  if (memory == nodes.end()) {
    return nullptr;
  }
  const auto amounts = memory->second.types.find(type);
  return amounts == memory->second.types.end() ? nullptr : &amounts->second;
}

/// A mask as the key of kubelet's reusable memory.
std::pair<std::string, std::string> ReuseKey(const NumaMask& nodes, const std::string& type) {
  return {ToString(nodes), type};
}

/// Takes up to `bytes` from the nodes of `mask` in ascending order; what each node gave.
std::map<int, uint64_t> TakeInOrder(const NumaMask& mask, const std::string& type, uint64_t bytes,
                                    std::map<int, NodeMemory>& nodes) {
  std::map<int, uint64_t> taken;
  for (const int id : mask) {
    const auto node = nodes.find(id);
    if (bytes == 0 || node == nodes.end() || node->second.types.count(type) == 0) {
      continue;
    }
    MemoryAmounts& amounts = node->second.types[type];
    const uint64_t part = std::min(bytes, amounts.free);
    amounts.free -= part;
    amounts.reserved += part;
    bytes -= part;
    if (part > 0) {
      taken[id] = part;
    }
  }
  return taken;
}

void CountAssignment(const NumaMask& mask, std::map<int, NodeMemory>& nodes) {
  for (const int id : mask) {
    if (const auto node = nodes.find(id); node != nodes.end()) {
      ++node->second.assignments;
      node->second.cells = mask;
    }
  }
}

/// Shrinks the blocks of ended init containers by what `block` uses again, so that sums stay right.
void ShrinkEndedInits(const MemoryRequest& request, const MemoryBlock& block, MemoryState& state) {
  uint64_t bytes = block.bytes;
  for (const std::string& init : request.ended_inits) {
    const auto blocks = state.assignments[request.pod].find(init);
    if (blocks == state.assignments[request.pod].end()) {
      continue;
    }
    for (MemoryBlock& held : blocks->second) {
      if (held.type == block.type && held.nodes == block.nodes) {
        const uint64_t again = std::min(held.bytes, bytes);
        held.bytes -= again;
        bytes -= again;
      }
    }
  }
}

/// Moves up to `bytes` on the nodes of `block` from ended init containers to `block`.
uint64_t TakeOver(const MemoryRequest& request, uint64_t bytes, MemoryBlock& block,
                  MemoryState& state) {
  uint64_t moved = 0;
  std::map<std::string, std::vector<MemoryBlock>>& containers = state.assignments[request.pod];
  for (const std::string& init : request.ended_inits) {
    const auto blocks = containers.find(init);
    if (blocks == containers.end()) {
      continue;
    }
    for (MemoryBlock& held : blocks->second) {
      for (auto& [node, part] : held.parts) {
        if (held.type != block.type || !block.nodes.Has(node)) {
          continue;
        }
        const uint64_t again = std::min(part, bytes - moved);
        part -= again;
        held.bytes -= again;
        moved += again;
        if (again > 0) {
          block.parts[node] += again;
        }
      }
    }
  }
  return moved;
}

}  // namespace

uint64_t Sum(const std::map<int, NodeMemory>& nodes, const NumaMask& mask, const std::string& type,
             uint64_t MemoryAmounts::* amount) {
  uint64_t sum = 0;
  for (const int node : mask) {
    if (const MemoryAmounts* amounts = FindAmounts(nodes, node, type); amounts != nullptr) {
      sum += amounts->*amount;
    }
  }
  return sum;
}

uint64_t StaticReusable(const MemoryState& state, const std::string& pod, const NumaMask& nodes,
                        const std::string& type) {
  const auto found = state.reusable.find(ReuseKey(nodes, type));
  return state.reusable_pod != pod || found == state.reusable.end() ? 0 : found->second;
}

/// What ended init containers of the pod hold on `nodes`.
uint64_t PartsReusable(const MemoryState& state, const MemoryRequest& request,
                       const NumaMask& nodes, const std::string& type) {
  uint64_t bytes = 0;
  for (const std::string& init : request.ended_inits) {
    const std::vector<MemoryBlock>* const blocks = state.Find(request.pod, init);
    if (blocks == nullptr) {
      continue;
    }
    for (const MemoryBlock& block : *blocks) {
      for (const auto& [node, part] : block.parts) {
        bytes += block.type == type && nodes.Has(node) ? part : 0;
      }
    }
  }
  return bytes;
}

void GiveBack(const NumaMask& mask, const std::string& type, uint64_t bytes,
              std::map<int, NodeMemory>& nodes) {
  for (const int id : mask) {
    const auto node = nodes.find(id);
    if (node == nodes.end() || node->second.types.count(type) == 0) {
      continue;
    }
    MemoryAmounts& amounts = node->second.types[type];
    const uint64_t part = std::min(bytes, amounts.reserved);
    amounts.reserved -= part;
    amounts.free += part;
    bytes -= part;
  }
}

void UncountAssignment(const NumaMask& mask, std::map<int, NodeMemory>& nodes) {
  for (const int id : mask) {
    const auto node = nodes.find(id);
    if (node != nodes.end() && --node->second.assignments <= 0) {
      node->second.assignments = 0;
      node->second.cells = NumaMask{id};
    }
  }
}

void UpdateStaticReusable(const MemoryRequest& request, const MemoryBlock& block,
                          MemoryState& state) {
  if (state.reusable_pod != request.pod) {
    state.reusable_pod = request.pod;
    state.reusable.clear();
  }
  uint64_t& bytes = state.reusable[ReuseKey(block.nodes, block.type)];
  if (request.role == ContainerRole::kInit) {
    bytes = std::max(bytes, block.bytes);
  } else {
    bytes -= std::min(bytes, block.bytes);
  }
}

MemoryState AllocateStatic(MemoryState state, const MemoryRequest& request, const NumaMask& nodes) {
  std::vector<MemoryBlock> blocks;
  for (const auto& [type, bytes] : request.bytes) {
    const uint64_t again = StaticReusable(state, request.pod, nodes, type);
    CountAssignment(nodes, state.nodes);
    TakeInOrder(nodes, type, bytes - std::min(bytes, again), state.nodes);
    blocks.push_back({.nodes = nodes, .type = type, .bytes = bytes, .parts = {}});
  }
  for (const MemoryBlock& block : blocks) {
    UpdateStaticReusable(request, block, state);
    ShrinkEndedInits(request, block, state);
  }
  state.assignments[request.pod][request.container] = std::move(blocks);
  return state;
}

StatusOr<std::map<int, NodeMemory>> StaticUsage(std::map<int, NodeMemory> nodes,
                                                const MemoryState& state) {
  for (const auto& [pod, containers] : state.assignments) {
    for (const auto& [container, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        for (const int node : block.nodes) {
          if (FindAmounts(nodes, node, block.type) == nullptr) {
            return Errorf(StatusCode::kFailedPrecondition,
                          "cannot start from the memory state: pod {}, container {} holds {} on "
                          "NUMA node {}, which has none; drain the node and remove the state",
                          pod, container, block.type, node);
          }
        }
        CountAssignment(block.nodes, nodes);
        TakeInOrder(block.nodes, block.type, block.bytes, nodes);
      }
    }
  }
  return nodes;
}

MemoryState AllocatePerNode(MemoryState state, const MemoryRequest& request,
                            const NumaMask& nodes) {
  std::vector<MemoryBlock> blocks;
  for (const auto& [type, bytes] : request.bytes) {
    MemoryBlock block{.nodes = nodes, .type = type, .bytes = bytes, .parts = {}};
    const uint64_t moved = TakeOver(request, bytes, block, state);
    for (const auto& [node, part] : TakeInOrder(nodes, type, bytes - moved, state.nodes)) {
      block.parts[node] += part;
    }
    CountAssignment(nodes, state.nodes);
    blocks.push_back(std::move(block));
  }
  state.assignments[request.pod][request.container] = std::move(blocks);
  return state;
}

/// `nodes` with every block's parts taken, as far as they still fit.
std::map<int, NodeMemory> PerNodeUsage(std::map<int, NodeMemory> nodes, const MemoryState& state) {
  for (const auto& [pod, containers] : state.assignments) {
    for (const auto& [container, blocks] : containers) {
      for (const MemoryBlock& block : blocks) {
        CountAssignment(block.nodes, nodes);
        for (const auto& [node, part] : block.parts) {
          TakeInOrder(NumaMask{node}, block.type, part, nodes);
        }
      }
    }
  }
  return nodes;
}

}  // namespace qrm
