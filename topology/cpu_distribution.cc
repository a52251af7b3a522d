// Spreads CPUs evenly over NUMA nodes: compares balances, then takes packed within each node.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "topology/cpu_accumulator.h"
#include "topology/cpu_layout.h"

namespace qrm {
namespace {

/// Up to so many nodes every combination is compared, as kubelet does.
constexpr std::size_t kMaxExactNodes = 8;
/// Beyond, so many combinations of each width.
constexpr int kMaxCombinations = 4096;

double Rounded(double value) {
  return std::round(value * 1000) / 1000;
}

/// Population standard deviation; mean and result rounded to three decimals.
double Imbalance(const std::vector<int>& values) {
  double sum = 0;
  for (const int value : values) {
    sum += value;
  }
  const double mean = Rounded(sum / static_cast<double>(values.size()));
  double squares = 0;
  for (const int value : values) {
    squares += (value - mean) * (value - mean);
  }
  return Rounded(std::sqrt(squares / static_cast<double>(values.size())));
}

/// Calls `visit` with each choice of `width` of `items`, in lexicographic order of positions, until
/// it returns false. Positions of equal `kinds` are interchangeable when `kinds` is not empty: only
/// the first ones of a kind are chosen.
class Combinations {
 public:
  using Visit = std::function<bool(const std::vector<int>&)>;

  Combinations(const std::vector<int>& items, const std::vector<int>& kinds, Visit visit)
      : items_(items), kinds_(kinds), visit_(std::move(visit)) {}

  void ForEach(std::size_t width) {
    going_ = true;
    visited_ = 0;
    chosen_.clear();
    closed_kinds_.clear();
    Choose(0, width);
  }

 private:
  void Choose(std::size_t from, std::size_t missing) {
    if (missing == 0) {
      ++visited_;
      going_ = visit_(chosen_) && (kinds_.empty() || visited_ < kMaxCombinations);
      return;
    }
    if (!going_ || items_.size() - from < missing) {
      return;
    }
    const bool open = kinds_.empty() || closed_kinds_[kinds_[from]] == 0;
    if (open) {
      chosen_.push_back(items_[from]);
      Choose(from + 1, missing - 1);
      chosen_.pop_back();
    }
    if (!going_) {
      return;
    }
    if (!kinds_.empty()) {
      ++closed_kinds_[kinds_[from]];
    }
    Choose(from + 1, missing);
    if (!kinds_.empty()) {
      --closed_kinds_[kinds_[from]];
    }
  }

  const std::vector<int>& items_;
  const std::vector<int>& kinds_;
  Visit visit_;
  std::vector<int> chosen_;
  std::map<int, int> closed_kinds_;
  bool going_ = true;
  int visited_ = 0;
};

/// Which nodes give CPUs, and which of them give the part that cannot be split evenly.
struct Split {
  double imbalance = std::numeric_limits<double>::max();
  std::vector<int> nodes;
  std::vector<int> remainder_nodes;
};

/// Finds the split of a request with the best balance of what stays free.
class Distribution {
 public:
  Distribution(const CpuAccumulator& taken, const CpuLayout& layout, int count, int group)
      : count_(count), group_(group), nodes_(taken.SortedNodes()) {
    free_.assign(layout.elements(CpuLayout::kNode).size(), 0);
    for (const int node : nodes_) {
      free_[static_cast<std::size_t>(node)] = taken.Free(CpuLayout::kNode, node);
    }
    if (nodes_.size() > kMaxExactNodes) {
      kinds_ = KindsOf(nodes_, free_);
    }
    const auto up = [](int a, int b) { return (a - 1) / b + 1; };
    const int total_groups = up(layout.all().Count(), group);
    const int groups_per_node =
        up(total_groups, static_cast<int>(layout.elements(CpuLayout::kNode).size()));
    const int groups = up(count, group);
    narrowest_ = up(groups, groups_per_node);
    widest_ = std::min(groups, static_cast<int>(nodes_.size()));
  }

  /// The best split over as few nodes as possible; no nodes when there is none.
  Split Find() {
    Split best;
    for (int width = narrowest_; width <= widest_ && best.nodes.empty(); ++width) {
      Combinations(nodes_, kinds_, [this, &best](const std::vector<int>& nodes) {
        Consider(nodes, best);
        return best.imbalance > 0;
      }).ForEach(static_cast<std::size_t>(width));
    }
    return best;
  }

  /// What each of `nodes` nodes gives for certain.
  int Even(std::size_t nodes) const { return count_ / static_cast<int>(nodes) / group_ * group_; }

 private:
  static std::vector<int> KindsOf(const std::vector<int>& nodes, const std::vector<int>& free) {
    std::vector<int> kinds;
    kinds.reserve(nodes.size());
    for (const int node : nodes) {
      kinds.push_back(free[static_cast<std::size_t>(node)]);
    }
    return kinds;
  }

  bool Fits(const std::vector<int>& nodes, int even) const {
    int whole_groups = 0;
    for (const int node : nodes) {
      const int free = free_[static_cast<std::size_t>(node)];
      if (free < even) {
        return false;
      }
      whole_groups += free / group_;
    }
    return whole_groups * group_ >= count_;
  }

  /// Free CPUs of all nodes in their order; nodes without any are not counted.
  std::vector<int> Left(const std::vector<int>& free) const {
    std::vector<int> left;
    left.reserve(nodes_.size());
    for (const int node : nodes_) {
      left.push_back(free[static_cast<std::size_t>(node)]);
    }
    return left;
  }

  void Consider(const std::vector<int>& nodes, Split& best) const {
    const int even = Even(nodes.size());
    if (!Fits(nodes, even)) {
      return;
    }
    std::vector<int> after = free_;
    for (const int node : nodes) {
      after[static_cast<std::size_t>(node)] -= even;
    }
    Split split{.nodes = nodes};
    const int remainder = count_ - even * static_cast<int>(nodes.size());
    if (remainder == 0) {
      split.imbalance = Imbalance(Left(after));
    } else {
      PlaceRemainder(after, remainder, split);
    }
    if (split.imbalance < best.imbalance) {
      best = split;
    }
  }

  void PlaceRemainder(const std::vector<int>& after, int remainder, Split& split) const {
    std::vector<int> candidates;
    for (const int node : split.nodes) {
      if (after[static_cast<std::size_t>(node)] >= group_) {
        candidates.push_back(node);
      }
    }
    const std::vector<int> kinds = kinds_.empty() ? kinds_ : KindsOf(candidates, after);
    Combinations subsets(candidates, kinds,
                         [this, &after, remainder, &split](const std::vector<int>& subset) {
                           const double imbalance = AfterRoundRobin(after, remainder, subset);
                           if (imbalance < split.imbalance) {
                             split.imbalance = imbalance;
                             split.remainder_nodes = subset;
                           }
                           return split.imbalance > 0;
                         });
    for (std::size_t width = candidates.size(); width >= 1 && split.imbalance > 0; --width) {
      subsets.ForEach(width);
    }
  }

  double AfterRoundRobin(std::vector<int> free, int remainder,
                         const std::vector<int>& subset) const {
    int room = 0;
    for (const int node : subset) {
      room += free[static_cast<std::size_t>(node)] / group_ * group_;
    }
    if (room < remainder) {
      return std::numeric_limits<double>::max();
    }
    while (remainder > 0) {
      for (const int node : subset) {
        int& left = free[static_cast<std::size_t>(node)];
        if (remainder > 0 && left >= group_) {
          left -= group_;
          remainder -= group_;
        }
      }
    }
    return Imbalance(Left(free));
  }

  int count_;
  int group_;
  int narrowest_ = 1;
  int widest_ = 1;
  std::vector<int> nodes_;  // with free CPUs, in the order in which they are filled
  std::vector<int> free_;   // by node
  std::vector<int> kinds_;  // of nodes_; empty: compare every combination
};

Status TakeFromNode(const CpuLayout& layout, int node, int count, CpuOrder order,
                    CpuAccumulator& taken) {
  const StatusOr<CpuSet> cpus =
      TakePacked(layout, taken.FreeCpus(CpuLayout::kNode, node), count, order);
  if (!cpus.ok()) {
    return cpus.status();
  }
  taken.Take(*cpus);
  return OkStatus();
}

}  // namespace

StatusOr<CpuSet> TakeDistributed(const CpuLayout& layout, const CpuSet& available, int count,
                                 int group_size, CpuOrder order) {
  CpuAccumulator taken(layout, available, std::max(count, 0));
  if (count <= 0 || group_size < 1 || count % group_size != 0 || taken.free().Count() < count) {
    return TakePacked(layout, available, count, order);
  }
  Distribution distribution(taken, layout, count, group_size);
  const Split split = distribution.Find();
  if (split.nodes.empty()) {
    return TakePacked(layout, available, count, order);
  }
  for (const int node : split.nodes) {
    QRM_RETURN_IF_ERROR(
        TakeFromNode(layout, node, distribution.Even(split.nodes.size()), order, taken));
  }
  while (!taken.satisfied()) {
    for (const int node : split.remainder_nodes) {
      if (!taken.satisfied() && taken.Free(CpuLayout::kNode, node) >= group_size) {
        QRM_RETURN_IF_ERROR(TakeFromNode(layout, node, group_size, order, taken));
      }
    }
  }
  return taken.result();
}

}  // namespace qrm
