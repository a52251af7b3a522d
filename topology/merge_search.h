// Finds the best mask that hint lists can agree on, without going through their product.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "topology/node_bits.h"

namespace qrm {

/// The masks that a mask of one set and a mask of another have in common, found by counting for
/// each mask the pairs whose intersection contains it, and taking away those that contain more.
///
/// Threads: one. Units: nodes by NodeIndex position.
/// Cost:    O(nodes x 2^nodes) time however many masks the sets have, 16 x 2^nodes bytes.
/// Source:  the zeta transform over supersets and its Moebius inversion (R. Kennes, "Computational
///          aspects of the Moebius transformation of graphs", 1992).
class MaskPairs {
 public:
  /// The counts of all pairs of masks of so many nodes fit into 64 bits.
  static constexpr std::size_t kMaxNodes = 16;

  /// For masks of `nodes` nodes; none above kMaxNodes can be asked.
  explicit MaskPairs(std::size_t nodes) : nodes_(nodes) {}

  /// Roughly the steps of ForEach.
  uint64_t Cost() const { return nodes_ > kMaxNodes ? UINT64_MAX : uint64_t{nodes_} << nodes_; }

  /// Calls `visit` with each mask that is the intersection of one of `first` and one of `second`,
  /// ascending; the empty mask is left out.
  template <std::size_t Words, typename Visit>
  void ForEach(const std::vector<NodeBits<Words>>& first,
               const std::vector<NodeBits<Words>>& second, Visit visit) {
    CountContaining(first, pairs_);
    CountContaining(second, containing_);
    for (std::size_t mask = 0; mask < pairs_.size(); ++mask) {
      pairs_[mask] *= containing_[mask];
    }
    // Node by node, the pairs whose intersection has the node are taken from those that may.
    ForEachStep(pairs_, [](uint64_t& without, uint64_t with) { without -= with; });
    for (std::size_t mask = 1; mask < pairs_.size(); ++mask) {
      if (pairs_[mask] != 0) {
        NodeBits<Words> bits;
        bits.words[0] = mask;
        visit(bits);
      }
    }
  }

 private:
  /// `counts` by mask: how many of `masks` contain it.
  template <std::size_t Words>
  void CountContaining(const std::vector<NodeBits<Words>>& masks, std::vector<uint64_t>& counts) {
    counts.assign(std::size_t{1} << nodes_, 0);
    for (const NodeBits<Words>& mask : masks) {
      counts[mask.words[0]] = 1;
    }
    ForEachStep(counts, [](uint64_t& without, uint64_t with) { without += with; });
  }

  /// Calls `step` for each node with each mask that lacks the node and the one that has it, too.
  template <typename Step>
  void ForEachStep(std::vector<uint64_t>& counts, Step step) const {
    for (std::size_t node = 1; node < counts.size(); node *= 2) {
      for (std::size_t block = 0; block < counts.size(); block += 2 * node) {
        for (std::size_t mask = block; mask < block + node; ++mask) {
          step(counts[mask], counts[mask + node]);
        }
      }
    }
  }

  std::size_t nodes_;
  std::vector<uint64_t> pairs_;       // by mask
  std::vector<uint64_t> containing_;  // by mask
};

/// The hints of one list by the nodes they contain, to split them by their intersection with a
/// narrow mask.
///
/// Threads: one. Units: nodes by NodeIndex position, widths in nodes.
/// Cost:    construction O(hints x their width); Split at most 2^(width + 1) x hints / 64.
template <std::size_t Words>
class HintIndex {
 public:
  HintIndex(const std::vector<NodeBits<Words>>& masks, std::size_t nodes)
      : blocks_((masks.size() + 63) / 64), containing_(nodes * blocks_, 0), all_(blocks_, 0) {
    for (std::size_t hint = 0; hint < masks.size(); ++hint) {
      const uint64_t bit = uint64_t{1} << (hint % 64);
      all_[hint / 64] |= bit;
      masks[hint].ForEach(
          [&](std::size_t node) { containing_[node * blocks_ + hint / 64] |= bit; });
    }
  }

  /// Roughly the steps of Split for a mask of `width` nodes.
  uint64_t CostOf(int width) const {
    return width > 20 ? UINT64_MAX : (uint64_t{2} << static_cast<unsigned>(width)) * blocks_;
  }

  /// Calls `emit` with each distinct intersection of `mask` and a hint that has at least
  /// `min_width` nodes.
  template <typename Emit>
  void Split(const NodeBits<Words>& mask, int min_width, Emit emit) {
    nodes_.clear();
    mask.ForEach([this](std::size_t node) { nodes_.push_back(node); });
    hints_.assign((nodes_.size() + 1) * blocks_, 0);
    std::copy(all_.begin(), all_.end(), hints_.begin());
    SplitFrom(0, NodeBits<Words>(), 0, min_width, emit);
  }

 private:
  template <typename Emit>
  void SplitFrom(std::size_t depth, const NodeBits<Words>& chosen, int width, int min_width,
                 Emit& emit) {
    if (width + static_cast<int>(nodes_.size() - depth) < min_width) {
      return;
    }
    if (depth == nodes_.size()) {
      emit(chosen);
      return;
    }
    const uint64_t* const having = &containing_[nodes_[depth] * blocks_];
    if (Narrow(depth, [having](std::size_t i) { return having[i]; })) {
      NodeBits<Words> with = chosen;
      with.Add(nodes_[depth]);
      SplitFrom(depth + 1, with, width + 1, min_width, emit);
    }
    if (Narrow(depth, [having](std::size_t i) { return ~having[i]; })) {
      SplitFrom(depth + 1, chosen, width, min_width, emit);
    }
  }

  /// The hints of the next depth are those of `depth` within `filter`; false when none is left.
  template <typename Filter>
  bool Narrow(std::size_t depth, Filter filter) {
    const uint64_t* const from = &hints_[depth * blocks_];
    uint64_t* const to = &hints_[(depth + 1) * blocks_];
    uint64_t any = 0;
    for (std::size_t i = 0; i < blocks_; ++i) {
      to[i] = from[i] & filter(i);
      any |= to[i];
    }
    return any != 0;
  }

  std::size_t blocks_;
  std::vector<uint64_t> containing_;  // node -> its hints, a bit each
  std::vector<uint64_t> all_;
  std::vector<std::size_t> nodes_;  // of the mask being split
  std::vector<uint64_t> hints_;     // depth -> the hints that agree so far
};

/// The masks that choosing one hint of each list can leave, by width.
///
/// Threads: one. Units: nodes by NodeIndex position, widths in nodes.
/// Cost:    passes x lists x reachable masks x hints (less for narrow masks, and never more than
///          MaskPairs), where each pass keeps only masks wide enough to matter; kMaxReachable
///          bounds the masks, and so the time.
/// Source:  the ranking is Kubernetes 1.36's, HintMerger.compare.
template <std::size_t Words>
class ReachableMasks {
 public:
  using Bits = NodeBits<Words>;
  /// Every mask of a machine with 16 nodes fits; choosing among overlapping sets is hard in
  /// general, so that a bound is needed for larger ones.
  static constexpr std::size_t kMaxReachable = std::size_t{1} << 16;

  /// `lists` must outlive this and none may be Empty(); `all` nodes of the machine.
  ReachableMasks(const std::vector<MergeList<Words>>& lists, const Bits& all)
      : lists_(lists), all_(all), pairs_(static_cast<std::size_t>(all.Count())) {
    const auto nodes = static_cast<std::size_t>(all.Count());
    for (const MergeList<Words>& list : lists) {
      indexes_.emplace_back(list.masks, nodes);
    }
  }

  /// The best reachable width: `wanted`, else the widest below it, else the narrowest above it; the
  /// masks of that width. Empty when the lists have no node in common.
  std::vector<Bits> Best(int wanted) {
    std::vector<Bits> above;
    for (int width = std::max(wanted, 1); width >= 1; width = widest_pruned_) {
      widest_pruned_ = 0;
      std::vector<Bits> reached = Reach(width);
      std::vector<Bits> exact;
      std::copy_if(reached.begin(), reached.end(), std::back_inserter(exact),
                   [width](const Bits& mask) { return mask.Count() == width; });
      if (!exact.empty()) {
        return exact;
      }
      if (above.empty()) {
        above = std::move(reached);
      }
    }
    return above;
  }

  /// Whether kMaxReachable was met, so that a better mask may have been missed. Cost: O(1).
  bool truncated() const { return truncated_; }

 private:
  /// The reachable masks of at least `min_width` nodes; notes the widest narrower one it met.
  std::vector<Bits> Reach(int min_width) {
    std::vector<Bits> reached = {all_};
    for (std::size_t i = 0; i < lists_.size() && !reached.empty(); ++i) {
      reached = Step(reached, i, min_width);
    }
    return reached;
  }

  std::vector<Bits> Step(const std::vector<Bits>& from, std::size_t list, int min_width) {
    constexpr uint64_t kStepsToSort = 8;  // what one by one are met are sorted
    return CostOf(from, list) * kStepsToSort > pairs_.Cost() ? StepAtOnce(from, list, min_width)
                                                             : StepOneByOne(from, list, min_width);
  }

  /// Whether `mask` has at least `min_width` nodes; else its width is noted.
  bool IsWide(const Bits& mask, int min_width) {
    const int width = mask.Count();
    if (width < min_width) {
      widest_pruned_ = std::max(widest_pruned_, width);
    }
    return width >= min_width;
  }

  std::vector<Bits> StepAtOnce(const std::vector<Bits>& from, std::size_t list, int min_width) {
    std::vector<Bits> hints = lists_[list].masks;
    if (lists_[list].any_node) {
      hints.push_back(all_);
    }
    std::vector<Bits> to;
    pairs_.ForEach(from, hints, [&](const Bits& mask) {
      if (IsWide(mask, min_width)) {
        to.push_back(mask);
      }
    });
    return to;
  }

  std::vector<Bits> StepOneByOne(const std::vector<Bits>& from, std::size_t list, int min_width) {
    std::vector<Bits> to;
    std::size_t limit = kMaxReachable * 2;
    const auto keep = [&](const Bits& mask) {
      if (!IsWide(mask, min_width)) {
        return;
      }
      to.push_back(mask);
      if (to.size() >= limit) {
        Compact(to);
        limit = to.size() + kMaxReachable;
      }
    };
    const std::vector<Bits>& hints = lists_[list].masks;
    for (const Bits& mask : from) {
      if (lists_[list].any_node) {
        keep(mask);
      }
      if (IsSplit(mask, list)) {
        // Narrower intersections are met too, so that widest_pruned_ is known.
        indexes_[list].Split(mask, 1, keep);
      } else {
        for (const Bits& hint : hints) {
          keep(mask & hint);
        }
      }
    }
    Compact(to);
    return to;
  }

  /// Whether splitting the list's hints by `mask` is cheaper than going through them.
  bool IsSplit(const Bits& mask, std::size_t list) const {
    return indexes_[list].CostOf(mask.Count()) < lists_[list].masks.size() * Words;
  }

  /// Roughly the steps of StepOneByOne. Cost: O(`from`).
  uint64_t CostOf(const std::vector<Bits>& from, std::size_t list) const {
    uint64_t cost = 0;
    for (const Bits& mask : from) {
      cost += IsSplit(mask, list) ? indexes_[list].CostOf(mask.Count())
                                  : lists_[list].masks.size() * Words;
    }
    return cost;
  }

  void Compact(std::vector<Bits>& masks) {
    std::sort(masks.begin(), masks.end());
    masks.erase(std::unique(masks.begin(), masks.end()), masks.end());
    if (masks.size() > kMaxReachable) {
      truncated_ = true;
      masks.resize(kMaxReachable);
    }
  }

  const std::vector<MergeList<Words>>& lists_;
  const Bits all_;
  std::vector<HintIndex<Words>> indexes_;
  MaskPairs pairs_;
  int widest_pruned_ = 0;
  bool truncated_ = false;
};

/// The masks that every list prefers, and what each list took from those before it.
/// Units: masks by NodeIndex position. Source: FindCommonPreference.
template <std::size_t Words>
struct CommonPreference {
  bool all_nodes = true;                               ///< no list restricts the nodes
  std::vector<NodeBits<Words>> masks;                  ///< else the masks that are left
  std::vector<std::vector<NodeBits<Words>>> excluded;  ///< by list
  std::optional<std::size_t> emptied_by;               ///< the list that excluded the last mask
};

/// The preference that `lists` have in common.
/// Units: as CommonPreference. Cost: O(hints), which are sorted. Source: Kubernetes 1.36,
/// mergePermutation: a merged hint is preferred when all its hints are and have the same mask.
template <std::size_t Words>
CommonPreference<Words> FindCommonPreference(const std::vector<MergeList<Words>>& lists) {
  CommonPreference<Words> common;
  common.excluded.resize(lists.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].any_node_preferred) {
      continue;
    }
    const std::vector<NodeBits<Words>>& preferred = lists[i].preferred;
    if (common.all_nodes) {
      common.all_nodes = false;
      common.masks = preferred;
      continue;
    }
    std::vector<NodeBits<Words>> left;
    std::set_intersection(common.masks.begin(), common.masks.end(), preferred.begin(),
                          preferred.end(), std::back_inserter(left));
    std::set_difference(common.masks.begin(), common.masks.end(), left.begin(), left.end(),
                        std::back_inserter(common.excluded[i]));
    if (left.empty() && !common.masks.empty()) {
      common.emptied_by = i;
    }
    common.masks = std::move(left);
  }
  return common;
}

/// The nodes that lists agree on. Units: by NodeIndex position. Source: Agree.
template <std::size_t Words>
struct Agreement {
  NodeBits<Words> nodes;
  bool preferred = false;
  bool truncated = false;  ///< ReachableMasks::truncated
};

/// The fittest mask that all of `lists` prefer, else the best one that they leave, of which widths
/// close to `wanted` are best; `all` nodes, not preferred, when they leave none.
/// Units: as Agreement, `wanted` in nodes. Cost: as FindCommonPreference, else as ReachableMasks.
/// Source: Kubernetes 1.36, HintMerger.
template <std::size_t Words>
Agreement<Words> Agree(const std::vector<MergeList<Words>>& lists,
                       const CommonPreference<Words>& common, const NodeBits<Words>& all,
                       const Fitness<Words>& fitness, int wanted) {
  Agreement<Words> agreed{.nodes = all};
  if (std::any_of(lists.begin(), lists.end(), [](const auto& list) { return list.Empty(); })) {
    return agreed;
  }
  std::vector<NodeBits<Words>> candidates = common.masks;
  if (common.all_nodes) {
    candidates = {all};
    for (const MergeList<Words>& list : lists) {
      candidates.insert(candidates.end(), list.preferred.begin(), list.preferred.end());
    }
  }
  agreed.preferred = !candidates.empty();
  if (!agreed.preferred) {
    ReachableMasks<Words> reachable(lists, all);
    candidates = reachable.Best(wanted);
    agreed.truncated = reachable.truncated();
  }
  if (!candidates.empty()) {
    agreed.nodes = fitness.Fittest(candidates);
  }
  return agreed;
}

}  // namespace qrm
