// Hints for amounts that NUMA nodes hold: few, narrow and close masks first, never all 2^n.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "api/hint.h"
#include "topology/machine.h"

namespace qrm {

/// How much each node, by the kernel's number, has in total and free.
/// Units: the caller's. Source: the account of the resource, such as the free CPUs of each node.
struct NodeAmounts {
  std::map<int, double> total;
  std::map<int, double> free;
};

/// Bounds on what GenerateHints offers. Units: nodes, masks.
struct HintGenerationOptions {
  int max_nodes = 0;     ///< widest mask to offer; 0: see GenerateHints
  int max_hints = 4096;  ///< masks of a size are offered closest first up to this many in all
};

/// The masks that can serve `amount`: the narrowest first, among equals the closest; preferred are
/// those as narrow as total amounts allow. Impossible when no mask can; no preference when `amount`
/// is not positive. Up to 12 nodes all masks (4,095) with the default options, as kubelet offers
/// them; on larger machines those of nodes with something free, as ClosestMasks visits them, but
/// never without a mask of the narrowest width that suffices.
/// Units: `amount` in those of `nodes`. Cost: O(max_hints x nodes) plus ClosestMasks'.
/// Source: Kubernetes 1.36 cpu and memory manager hints.
HintList GenerateHints(const Machine& machine, double amount, const NodeAmounts& nodes,
                       const HintGenerationOptions& options = {});

/// The amount of `node`; 0 for a node without one.
template <typename Amount>
Amount AmountOf(const std::map<int, Amount>& amounts, int node) {
  const auto found = amounts.find(node);
  return found == amounts.end() ? Amount() : found->second;
}

/// Up to `width` nodes of `candidates`, those with the largest amounts; of equal ones the lowest
/// numbers. Units: the caller's. Cost: O(nodes log nodes).
template <typename Amount>
NumaMask Richest(const NumaMask& candidates, const std::map<int, Amount>& amounts, int width) {
  std::vector<int> nodes(candidates.begin(), candidates.end());
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](int a, int b) { return AmountOf(amounts, a) > AmountOf(amounts, b); });
  NumaMask mask;
  for (int i = 0; i < std::min(width, static_cast<int>(nodes.size())); ++i) {
    mask.Add(nodes[static_cast<std::size_t>(i)]);
  }
  return mask;
}

/// The fewest of `amounts` that make `wanted`; one more than there are when all are too little.
/// Units: the caller's. Cost: O(amounts log amounts).
template <typename Amount>
int FewestOf(std::vector<Amount> amounts, Amount wanted) {
  std::sort(amounts.rbegin(), amounts.rend());
  Amount sum{};
  std::size_t count = 0;
  while (sum < wanted && count < amounts.size()) {
    sum += amounts[count++];
  }
  return static_cast<int>(count) + (sum < wanted ? 1 : 0);
}

/// Masks of a machine's nodes, width by width, those with the smallest sum of distances first and
/// among equals the smallest number. Where there are more than 4,096 masks of a width, only those
/// that grow from each node by the node nearest to all before it.
///
/// Threads: one at a time. Units: distances as in the SLIT.
/// Cost:    construction O(nodes squared); the first width with more masks than that O(nodes
///          cubed); Visit O(masks x (width + log masks)), masks at most 4,096.
class ClosestMasks {
 public:
  /// Of `candidates`, nodes of `machine`, which need not outlive this.
  ClosestMasks(const Machine& machine, const NumaMask& candidates);

  /// Whether Visit knows all masks of `width` nodes.
  bool KnowsAll(int width) const;

  /// Calls `visit` with masks of `width` nodes until it returns false or there are no more.
  void Visit(int width, const std::function<bool(const NumaMask&)>& visit) const;

  /// The widest masks to offer where `narrowest` nodes suffice: all up to 12 nodes, as kubelet
  /// does; beyond, one node more, because merging pays for every mask and gains nothing from wide
  /// ones. Units: nodes. Cost: O(1).
  int WidestWorthOffering(int narrowest) const;

  /// How many nodes there are to choose from. Cost: O(1).
  int size() const { return static_cast<int>(ids_.size()); }

 private:
  struct Ranked {
    uint64_t distance = 0;   // sum over all ordered pairs
    std::vector<int> nodes;  // positions in ids_, ascending
  };

  void Put(int node, Ranked& mask) const;
  void Extend(Ranked& mask, int from, int missing, std::vector<Ranked>& all) const;
  std::vector<Ranked> AroundEach(int width) const;
  uint64_t Between(int from, int to) const {
    return distances_[static_cast<std::size_t>(from) * ids_.size() + static_cast<std::size_t>(to)];
  }
  std::vector<int> GrowFrom(int start) const;

  std::vector<int> ids_;
  std::vector<uint64_t> distances_;  // both ways added up, by position
  /// By start: all positions, nearest first. Made when it is first needed.
  mutable std::vector<std::vector<int>> growth_;
};

}  // namespace qrm
