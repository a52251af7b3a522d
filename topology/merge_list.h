// Hint lists in the form in which they are merged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "api/hint.h"
#include "topology/node_bits.h"

namespace qrm {

/// Which hints take part in a merge. Source: Kubernetes 1.36, filterSingleNumaHints.
enum class HintFilter {
  kAll,
  kPreferredSingleNode,  ///< preferred ones of one node or without affinity
};

/// One resource's hints, ready for merging. Masks are sorted and unique.
/// Units: masks by NodeIndex position, widths in nodes.
template <std::size_t Words>
struct MergeList {
  std::vector<NodeBits<Words>> preferred;  ///< of preferred hints
  std::vector<NodeBits<Words>> masks;      ///< of all hints, preferred or not
  bool any_node = false;                   ///< has a hint without affinity
  bool any_node_preferred = false;         ///< and a preferred one
  int narrowest = 0;                       ///< width of its narrowest mask; 0: it has no mask

  /// Whether no hint is left. Cost: O(1).
  bool Empty() const { return masks.empty() && !any_node; }
};

/// `hints` by `filter`. Nodes that the machine does not have are left out.
/// Units: as MergeList. Cost: O(hints log hints).
/// Source: Kubernetes 1.36, filterProvidersHints, filterSingleNumaHints.
template <std::size_t Words>
MergeList<Words> PrepareList(const HintList& hints, const NodeIndex& nodes, HintFilter filter) {
  const bool single = filter == HintFilter::kPreferredSingleNode;
  MergeList<Words> list;
  list.any_node = hints.IsNoPreference() || (hints.IsImpossible() && !single);
  list.any_node_preferred = hints.IsNoPreference();
  list.masks.reserve(hints.hints().size());
  for (const TopologyHint& hint : hints.hints()) {
    if (single && !hint.preferred) {
      continue;
    }
    if (hint.nodes.Empty()) {
      list.any_node = true;
      list.any_node_preferred |= hint.preferred;
      continue;
    }
    const NodeBits<Words> mask = nodes.BitsOf<Words>(hint.nodes);
    const int width = mask.Count();
    if (width == 0 || (single && width != 1)) {
      continue;
    }
    list.masks.push_back(mask);
    list.narrowest = list.narrowest == 0 ? width : std::min(list.narrowest, width);
    if (hint.preferred) {
      list.preferred.push_back(mask);
    }
  }
  for (std::vector<NodeBits<Words>>* masks : {&list.preferred, &list.masks}) {
    std::sort(masks->begin(), masks->end());
    masks->erase(std::unique(masks->begin(), masks->end()), masks->end());
  }
  return list;
}

/// The width that a merged hint needs at least to be as wide as every resource's narrowest hint; 0
/// when no hint has a mask. Units: nodes. Cost: O(lists).
/// Source: Kubernetes 1.36, maxOfMinAffinityCounts.
template <std::size_t Words>
int WidestNeed(const std::vector<MergeList<Words>>& lists) {
  int widest = 0;
  for (const MergeList<Words>& list : lists) {
    widest = std::max(widest, list.narrowest);
  }
  return widest;
}

}  // namespace qrm
