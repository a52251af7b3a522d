// Makes kubelet's choice of nodes from one table of bytes per node.
#include "topology/static_memory_policy.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "api/base/errorf.h"
#include "topology/hint_generation.h"

namespace qrm {
namespace {

constexpr std::size_t kMaxMemoryHints = 4096;

Status NotAllowed(const NumaMask& nodes, const std::string& cause) {
  return Errorf(
      StatusCode::kFailedPrecondition,
      "cannot give memory of NUMA nodes {}: {}; remove a pod, or bind this one by its role "
      "instead of by static",
      ToString(nodes), cause);
}

/// Whether a block on `nodes` would break the rule that a node serves either single-node blocks or
/// one group. Source: Kubernetes 1.36, isAffinityViolatingNUMAAllocations.
bool BreaksGroupRule(const MemoryTable& table, const NumaMask& nodes) {
  if (nodes.Count() == 1) {
    return false;
  }
  return std::ranges::any_of(nodes, [&](int id) {
    const auto node = table.find(id);
    return node != table.end() && node->second.assignments > 0 && node->second.cells != nodes;
  });
}

/// Whether the group rule leaves `mask` to a new block.
bool GroupAllows(const MemoryTable& table, const NumaMask& mask) {
  return mask.Count() == 1 ? table.at(mask.First()).cells.Count() <= 1
                           : !BreaksGroupRule(table, mask);
}

/// What the container may use again on exactly these nodes. Source: Kubernetes 1.36,
/// getPodReusableMemory.
uint64_t Reusable(const StaticMemoryRequest& request, const NumaMask& nodes,
                  const std::string& type) {
  uint64_t bytes = 0;
  for (const MemoryBlock& block : request.leftover) {
    bytes += block.type == type && block.nodes == nodes ? block.bytes : 0;
  }
  return bytes;
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

bool HasAllFree(const MemoryTable& table, const NumaMask& mask, const MemoryBytes& bytes) {
  return std::ranges::all_of(bytes, [&](const auto& asked) {
    return Sum(table, mask, asked.first, &MemoryAmounts::free) >= asked.second;
  });
}

/// The nodes of `table` with at most `most` assignments.
NumaMask NodesOf(const MemoryTable& table, int most) {
  NumaMask nodes;
  for (const auto& [id, node] : table) {
    if (node.assignments <= most) {
      nodes.Add(id);
    }
  }
  return nodes;
}

NumaMask UnusedNodesOf(const MemoryTable& table) {
  return NodesOf(table, 0);
}

/// Of `nodes`, for each type that is asked for, the `width` nodes that have most of it.
std::vector<NumaMask> RichestOf(const NumaMask& nodes, const MemoryTable& table,
                                const MemoryBytes& asked, uint64_t MemoryAmounts::* amount,
                                int width) {
  std::vector<NumaMask> masks;
  for (const auto& [type, bytes] : asked) {
    std::map<int, uint64_t> amounts;
    for (const int node : nodes) {
      amounts[node] = Sum(table, {node}, type, amount);
    }
    if (NumaMask mask = Richest(nodes, amounts, width);
        std::ranges::find(masks, mask) == masks.end()) {
      masks.push_back(std::move(mask));
    }
  }
  return masks;
}

/// Masks of `width` nodes, of several, that the group rule leaves to a new block: the groups that
/// are there, and of the nodes `unused`, which serve no container, the closest and the richest
/// ones.
std::vector<NumaMask> OpenMasks(const MemoryTable& table, const MemoryBytes& asked,
                                const ClosestMasks& unused, int width) {
  std::vector<NumaMask> masks;
  for (const auto& [id, node] : table) {
    if (node.assignments > 0 && node.cells.Count() == width && node.cells.First() == id) {
      masks.push_back(node.cells);
    }
  }
  if (width <= unused.size() && !unused.KnowsAll(width)) {
    const auto richest = RichestOf(UnusedNodesOf(table), table, asked, &MemoryAmounts::free, width);
    masks.insert(masks.end(), richest.begin(), richest.end());
  }
  unused.Visit(width, [&](const NumaMask& mask) {
    if (std::ranges::find(masks, mask) == masks.end()) {
      masks.push_back(mask);
    }
    return true;
  });
  return masks;
}

}  // namespace

bool StaticMemoryPolicy::HasFree(const MemoryTable& table, const NumaMask& mask,
                                 const std::string& type, uint64_t bytes) const {
  if (flows_ == nullptr || bytes == 0) {
    return Sum(table, mask, type, &MemoryAmounts::free) >= bytes;
  }
  const auto flow = flows_->find(type);
  return flow != flows_->end() && flow->second.Fits(mask, bytes);
}

std::vector<TopologyHint> StaticMemoryPolicy::Hints(const MemoryTable& table,
                                                    const StaticMemoryRequest& request) const {
  const auto holds = [&](const NumaMask& mask) {
    return std::ranges::all_of(request.bytes, [&](const auto& asked) {
      return Sum(table, mask, asked.first, &MemoryAmounts::allocatable) >= asked.second;
    });
  };
  const auto has_free = [&](const NumaMask& mask) {
    return std::ranges::all_of(request.bytes, [&](const auto& asked) {
      const uint64_t reused = std::min(Reusable(request, mask, asked.first), asked.second);
      return HasFree(table, mask, asked.first, asked.second - reused);
    });
  };
  const NumaMask all = NodesOf(table, std::numeric_limits<int>::max());
  int narrowest = all.Count();
  const ClosestMasks masks(machine_, all);
  const ClosestMasks unused(machine_, UnusedNodesOf(table));
  std::vector<TopologyHint> hints;
  int widest = masks.size();
  for (int width = 1; width <= widest && hints.size() < kMaxMemoryHints; ++width) {
    const auto offer = [&](const NumaMask& mask) {
      if (holds(mask)) {
        narrowest = std::min(narrowest, width);
        if (GroupAllows(table, mask) && has_free(mask)) {
          hints.push_back({.nodes = mask, .preferred = width == narrowest});
        }
      }
      return hints.size() < kMaxMemoryHints;
    };
    if (masks.KnowsAll(width)) {
      masks.Visit(width, offer);
    } else {  // most of so many have a node that the group rule denies
      const auto most = RichestOf(all, table, request.bytes, &MemoryAmounts::allocatable, width);
      narrowest = std::ranges::any_of(most, holds) ? std::min(narrowest, width) : narrowest;
      for (const NumaMask& mask : OpenMasks(table, request.bytes, unused, width)) {
        if (!offer(mask)) {
          break;
        }
      }
    }
    if (!hints.empty()) {
      widest = masks.WidestWorthOffering(hints.front().nodes.Count());
    }
  }
  return hints;
}

StatusOr<NumaMask> StaticMemoryPolicy::Choose(const MemoryTable& table,
                                              const StaticMemoryRequest& request,
                                              const TopologyHint& hint) const {
  TopologyHint chosen = hint;
  const auto suffices = [&](const NumaMask& mask) {
    return !mask.Empty() && HasAllFree(table, mask, request.bytes);
  };
  // An empty hint is replaced, one that is too small is extended.
  for (int attempt = 0; attempt < 2 && !suffices(chosen.nodes); ++attempt) {
    std::vector<TopologyHint> hints = Hints(table, request);
    std::erase_if(hints, [&chosen](const TopologyHint& offered) {
      return !chosen.nodes.IsSubsetOf(offered.nodes);
    });
    if (hints.empty()) {
      return Errorf(StatusCode::kResourceExhausted,
                    "cannot give memory: no NUMA nodes{} have enough free; ask for less or remove "
                    "a pod",
                    chosen.nodes.Empty() ? "" : " around " + ToString(chosen.nodes));
    }
    const TopologyHint& best = BestOf(hints);
    if (chosen.preferred && !best.preferred) {
      return NotAllowed(best.nodes, "they are more than it would need on an empty machine");
    }
    const bool same = best.nodes == chosen.nodes;
    chosen = best;
    if (same) {
      break;  // enough together with what init containers left
    }
  }
  if (BreaksGroupRule(table, chosen.nodes)) {
    return NotAllowed(chosen.nodes, "they serve other containers singly or in another group");
  }
  return chosen.nodes;
}

uint64_t UseAgain(const MemoryBlock& block, std::vector<MemoryBlock>& leftover) {
  uint64_t used = 0;
  for (MemoryBlock& held : leftover) {
    if (held.type == block.type && held.nodes == block.nodes) {
      const uint64_t again = std::min(held.bytes, block.bytes - used);
      held.bytes -= again;
      used += again;
    }
  }
  return used;
}

}  // namespace qrm
