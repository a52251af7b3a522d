// NUMA masks as fixed-width words for merging, without allocation and with nodes numbered by
// position, and hint lists of such masks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "api/hint.h"
#include "topology/machine.h"

namespace qrm {

/// A mask of up to 64 x `Words` nodes.
/// Units: nodes by NodeIndex position. Cost: O(Words) each but where O(1).
template <std::size_t Words>
struct NodeBits {
  std::array<uint64_t, Words> words{};

  int Count() const {
    int count = 0;
    for (const uint64_t word : words) {
      count += std::popcount(word);
    }
    return count;
  }
  bool Any() const {
    uint64_t any = 0;
    for (const uint64_t word : words) {
      any |= word;
    }
    return any != 0;
  }
  bool Has(std::size_t node) const { return ((words[node / 64] >> (node % 64)) & 1U) != 0; }
  void Add(std::size_t node) { words[node / 64] |= uint64_t{1} << (node % 64); }
  bool IsSubsetOf(const NodeBits& other) const { return (*this & other) == *this; }

  /// Calls `visit` with each node, ascending.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < Words; ++i) {
      for (uint64_t word = words[i]; word != 0; word &= word - 1) {
        visit(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

  friend NodeBits operator&(const NodeBits& a, const NodeBits& b) {
    NodeBits both;
    for (std::size_t i = 0; i < Words; ++i) {
      both.words[i] = a.words[i] & b.words[i];
    }
    return both;
  }
  friend bool operator==(const NodeBits& a, const NodeBits& b) { return a.words == b.words; }
  /// As numbers: the highest node that differs decides.
  friend bool operator<(const NodeBits& a, const NodeBits& b) {
    for (std::size_t i = Words; i-- > 0;) {
      if (a.words[i] != b.words[i]) {
        return a.words[i] < b.words[i];
      }
    }
    return false;
  }
};

/// Translates between the kernel's node numbers and positions 0, 1, 2 ... of a machine's nodes.
/// Positions keep the order of the numbers, so masks compare alike in both.
///
/// Threads: immutable, any.
/// Units:   node ids are the kernel's, positions count from 0.
/// Cost:    O(words) where the nodes are numbered without gaps, O(nodes of the mask) elsewhere.
class NodeIndex {
 public:
  explicit NodeIndex(const Machine& machine) : gapless_(true) {
    int next = 0;
    for (const NumaNode& node : machine.nodes()) {
      gapless_ &= node.id == next++;
      ids_.push_back(node.id);
      position_.resize(static_cast<std::size_t>(node.id) + 1, -1);
      position_.back() = static_cast<int>(ids_.size()) - 1;
    }
  }

  std::size_t size() const { return ids_.size(); }
  int IdOf(std::size_t position) const { return ids_[position]; }

  /// Nodes that the machine does not have are left out.
  template <std::size_t Words>
  NodeBits<Words> BitsOf(const NumaMask& mask) const {
    NodeBits<Words> bits;
    if (gapless_ && mask.Last() < static_cast<int>(ids_.size())) {
      for (std::size_t i = 0; i < mask.words().size(); ++i) {
        bits.words[i] = mask.words()[i];
      }
      return bits;
    }
    for (const int id : mask) {
      if (static_cast<std::size_t>(id) < position_.size() &&
          position_[static_cast<std::size_t>(id)] >= 0) {
        bits.Add(static_cast<std::size_t>(position_[static_cast<std::size_t>(id)]));
      }
    }
    return bits;
  }

  template <std::size_t Words>
  NodeBits<Words> All() const {
    NodeBits<Words> bits;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      bits.Add(i);
    }
    return bits;
  }

  template <std::size_t Words>
  NumaMask MaskOf(const NodeBits<Words>& bits) const {
    NumaMask mask;
    bits.ForEach([this, &mask](std::size_t position) { mask.Add(ids_[position]); });
    return mask;
  }

 private:
  std::vector<int> ids_;
  std::vector<int> position_;  // by node id, or -1
  bool gapless_;
};

/// Orders masks of equal rank: narrower first, then closer if asked for, then the smaller number.
/// Units: distances as in the SLIT. Cost: O(Words), with distances O(width squared).
/// Source: Kubernetes 1.36, IsNarrowerThan and Closest; sums of distances over masks of one width
/// order as the averages do.
template <std::size_t Words>
class Fitness {
 public:
  /// By width and number.
  Fitness() = default;
  /// By width, distance and number.
  Fitness(const Machine& machine, const NodeIndex& nodes) : size_(nodes.size()) {
    distances_.reserve(size_ * size_);
    for (std::size_t from = 0; from < size_; ++from) {
      for (std::size_t to = 0; to < size_; ++to) {
        distances_.push_back(machine.Distance(nodes.IdOf(from), nodes.IdOf(to)));
      }
    }
  }

  /// The fittest of `masks`, which must not be empty. Cost: that of one mask, times masks.
  NodeBits<Words> Fittest(const std::vector<NodeBits<Words>>& masks) const {
    NodeBits<Words> best = masks.front();
    Score best_score = ScoreOf(best);
    for (const NodeBits<Words>& mask : masks) {
      const int width = mask.Count();
      if (width > best_score.width) {
        continue;
      }
      const Score score = ScoreOf(mask);
      const auto rank = [](const Score& s) { return std::pair(s.width, s.distance); };
      if (rank(score) < rank(best_score) || (rank(score) == rank(best_score) && mask < best)) {
        best = mask;
        best_score = score;
      }
    }
    return best;
  }

  /// Over all ordered pairs, a node with itself included; 0 when distances do not count.
  uint64_t SumOfDistances(const NodeBits<Words>& mask) const {
    uint64_t sum = 0;
    if (!distances_.empty()) {
      mask.ForEach([&](std::size_t from) {
        mask.ForEach([&](std::size_t to) { sum += distances_[from * size_ + to]; });
      });
    }
    return sum;
  }

 private:
  struct Score {
    int width = 0;
    uint64_t distance = 0;
  };

  Score ScoreOf(const NodeBits<Words>& mask) const {
    return {.width = mask.Count(), .distance = SumOfDistances(mask)};
  }

  std::size_t size_ = 0;
  std::vector<uint64_t> distances_;  // row by row; empty: distances do not count
};

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
