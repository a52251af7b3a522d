// Two policies over one account of bytes per node.
#include "topology/memory_assignment.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "topology/hint_generation.h"

namespace qrm {
namespace {

constexpr std::size_t kMaxHints = 4096;

const MemoryAmounts* FindAmounts(const std::map<int, NodeMemory>& nodes, int node,
                                 const std::string& type) {
  const auto memory = nodes.find(node);
  if (memory == nodes.end()) {
    return nullptr;
  }
  const auto amounts = memory->second.types.find(type);
  return amounts == memory->second.types.end() ? nullptr : &amounts->second;
}

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

/// A mask as the key of kubelet's reusable memory.
std::pair<std::string, std::string> ReuseKey(const NumaMask& nodes, const std::string& type) {
  return {ToString(nodes), type};
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

void CountAssignment(const NumaMask& mask, std::map<int, NodeMemory>& nodes) {
  for (const int id : mask) {
    if (const auto node = nodes.find(id); node != nodes.end()) {
      ++node->second.assignments;
      node->second.cells = mask;
    }
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

// --- kubelet's rules ---------------------------------------------------------------------------

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

Status NotAllowed(const MemoryRequest& request, const std::string& cause) {
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot give memory to container {}: {}; free memory or use memory policy per-node",
                request.container, cause);
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

// --- accounting per node -----------------------------------------------------------------------

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

/// Whether the group rule leaves `mask` to a new block.
bool GroupAllows(const std::map<int, NodeMemory>& nodes, const NumaMask& mask) {
  if (mask.Count() == 1) {
    return nodes.at(mask.First()).cells.Count() <= 1;
  }
  return !BreaksGroupRule(nodes, mask);
}

/// Preferred before not preferred, then narrower, then the smaller number. `hints` is not empty.
const TopologyHint& BestOf(const std::vector<TopologyHint>& hints) {
  return *std::min_element(
      hints.begin(), hints.end(), [](const TopologyHint& a, const TopologyHint& b) {
        if (a.preferred != b.preferred) {
          return a.preferred;
        }
        const int width_a = a.nodes.Count();
        const int width_b = b.nodes.Count();
        return width_a != width_b ? width_a < width_b : a.nodes.CompareAsNumber(b.nodes) < 0;
      });
}

}  // namespace

bool BreaksGroupRule(const std::map<int, NodeMemory>& memory, const NumaMask& nodes) {
  if (nodes.Count() == 1) {
    return false;
  }
  return std::any_of(nodes.begin(), nodes.end(), [&](int id) {
    const auto node = memory.find(id);
    return node != memory.end() && node->second.assignments > 0 && node->second.cells != nodes;
  });
}

MemoryAssignment::MemoryAssignment(const Machine& machine, MemoryPolicy policy,
                                   std::map<int, MemoryBytes> reserved)
    : machine_(machine), policy_(policy), reserved_(std::move(reserved)) {}

StatusOr<MemoryState> MemoryAssignment::Start(const MemoryState& state) const {
  const std::map<int, NodeMemory> unused = UnusedMemory(machine_, reserved_);
  MemoryState started = state;
  if (policy_ == MemoryPolicy::kPerNode) {
    started.nodes = PerNodeUsage(unused, state);
    return started;
  }
  if (state.nodes.empty()) {
    if (!state.assignments.empty()) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot start from the memory state: it has assignments but no NUMA nodes; "
                    "drain the node and remove the state");
    }
    started.nodes = unused;
    return started;
  }
  QRM_ASSIGN_OR_RETURN(const auto expected, StaticUsage(unused, state));
  if (!SameMemory(state.nodes, expected)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot start from the memory state: its amounts do not follow from the machine, "
                  "the reservation and its assignments; drain the node and remove the state");
  }
  return started;
}

std::vector<TopologyHint> MemoryAssignment::Candidates(const MemoryState& state,
                                                       const MemoryRequest& request) const {
  const bool grouped = policy_ == MemoryPolicy::kStatic;
  const auto holds = [&](const NumaMask& mask) {
    return std::all_of(request.bytes.begin(), request.bytes.end(), [&](const auto& asked) {
      return Sum(state.nodes, mask, asked.first, &MemoryAmounts::allocatable) >= asked.second;
    });
  };
  const auto has_free = [&](const NumaMask& mask) {
    return std::all_of(request.bytes.begin(), request.bytes.end(), [&](const auto& asked) {
      const uint64_t again = grouped ? StaticReusable(state, request.pod, mask, asked.first)
                                     : PartsReusable(state, request, mask, asked.first);
      return Sum(state.nodes, mask, asked.first, &MemoryAmounts::free) + again >= asked.second;
    });
  };
  NumaMask all;
  for (const auto& [id, node] : state.nodes) {
    all.Add(id);
  }
  int narrowest = all.Count();
  const ClosestMasks masks(machine_, all);
  std::vector<TopologyHint> hints;
  int widest = masks.size();
  for (int width = 1; width <= widest && hints.size() < kMaxHints; ++width) {
    masks.Visit(width, [&](const NumaMask& mask) {
      if (holds(mask)) {
        narrowest = std::min(narrowest, width);
        if ((!grouped || GroupAllows(state.nodes, mask)) && has_free(mask)) {
          hints.push_back({.nodes = mask, .preferred = width == narrowest});
        }
      }
      return hints.size() < kMaxHints;
    });
    if (!hints.empty()) {
      widest = masks.WidestWorthOffering(hints.front().nodes.Count());
    }
  }
  return hints;
}

HintList MemoryAssignment::Hints(const MemoryState& state, const MemoryRequest& request) const {
  if (request.bytes.empty()) {
    return HintList::NoPreference();
  }
  const std::vector<MemoryBlock>* const held = state.Find(request.pod, request.container);
  if (held == nullptr) {
    return HintList(Candidates(state, request));
  }
  const bool same = held->size() == request.bytes.size() &&
                    std::all_of(held->begin(), held->end(), [&request](const MemoryBlock& block) {
                      const auto asked = request.bytes.find(block.type);
                      return asked != request.bytes.end() && asked->second == block.bytes;
                    });
  if (!same) {
    return HintList::NoPreference();
  }
  return HintList({TopologyHint{.nodes = held->front().nodes, .preferred = true}});
}

StatusOr<NumaMask> MemoryAssignment::ChooseNodes(const MemoryState& state,
                                                 const MemoryRequest& request) const {
  TopologyHint chosen = request.hint;
  const auto satisfies = [&](const NumaMask& mask) {
    return !mask.Empty() &&
           std::all_of(request.bytes.begin(), request.bytes.end(), [&](const auto& asked) {
             return Sum(state.nodes, mask, asked.first, &MemoryAmounts::free) >= asked.second;
           });
  };
  // An empty hint is replaced, one that is too small is extended.
  for (int attempt = 0; attempt < 2 && !satisfies(chosen.nodes); ++attempt) {
    std::vector<TopologyHint> hints = Candidates(state, request);
    hints.erase(std::remove_if(hints.begin(), hints.end(),
                               [&chosen](const TopologyHint& hint) {
                                 return !chosen.nodes.IsSubsetOf(hint.nodes);
                               }),
                hints.end());
    if (hints.empty()) {
      return Errorf(StatusCode::kResourceExhausted,
                    "cannot give memory to container {}: no NUMA nodes{} have enough free; ask for "
                    "less or free some",
                    request.container,
                    chosen.nodes.Empty() ? "" : " around " + ToString(chosen.nodes));
    }
    const TopologyHint& best = BestOf(hints);
    if (policy_ == MemoryPolicy::kStatic && chosen.preferred && !best.preferred) {
      return NotAllowed(request, "nodes " + ToString(best.nodes) +
                                     " are more than it would need on an empty machine");
    }
    const bool same = best.nodes == chosen.nodes;
    chosen = best;
    if (same) {
      break;  // enough together with what init containers left
    }
  }
  if (policy_ == MemoryPolicy::kStatic && BreaksGroupRule(state.nodes, chosen.nodes)) {
    return NotAllowed(request, "nodes " + ToString(chosen.nodes) +
                                   " serve other containers singly or in another group");
  }
  return chosen.nodes;
}

StatusOr<MemoryState> MemoryAssignment::Allocate(const MemoryState& state,
                                                 const MemoryRequest& request) const {
  if (request.bytes.empty()) {
    return state;
  }
  if (const std::vector<MemoryBlock>* held = state.Find(request.pod, request.container);
      held != nullptr) {
    MemoryState next = state;
    for (const MemoryBlock& block : *held) {
      if (policy_ == MemoryPolicy::kStatic) {
        UpdateStaticReusable(request, block, next);
      }
    }
    return next;
  }
  QRM_ASSIGN_OR_RETURN(const NumaMask nodes, ChooseNodes(state, request));
  return policy_ == MemoryPolicy::kStatic ? AllocateStatic(state, request, nodes)
                                          : AllocatePerNode(state, request, nodes);
}

MemoryState MemoryAssignment::Remove(const MemoryState& state, const std::string& pod,
                                     const std::string& container) const {
  MemoryState next = state;
  const std::vector<MemoryBlock>* const held = state.Find(pod, container);
  if (held == nullptr) {
    return next;
  }
  for (const MemoryBlock& block : *held) {
    UncountAssignment(block.nodes, next.nodes);
    if (policy_ == MemoryPolicy::kStatic) {
      GiveBack(block.nodes, block.type, block.bytes, next.nodes);
    }
    for (const auto& [node, part] : block.parts) {
      GiveBack(NumaMask{node}, block.type, part, next.nodes);
    }
  }
  next.assignments[pod].erase(container);
  if (next.assignments[pod].empty()) {
    next.assignments.erase(pod);
  }
  return next;
}

}  // namespace qrm
