// Two policies over one account of bytes per node.
#include "topology/memory_assignment.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "topology/hint_generation.h"
#include "topology/memory_accounting.h"

namespace qrm {
namespace {

constexpr std::size_t kMaxHints = 4096;

Status NotAllowed(const MemoryRequest& request, const std::string& cause) {
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot give memory to container {}: {}; free memory or use memory policy per-node",
                request.container, cause);
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