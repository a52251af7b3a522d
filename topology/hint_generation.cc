// Enumerates masks width by width, bounded in number.
#include "topology/hint_generation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace qrm {
namespace {

constexpr uint64_t kMaxMasksOfWidth = 65536;

/// Width of `count` things of `of`, or kMaxMasksOfWidth + 1 when there are more.
uint64_t Choices(int of, int count) {
  uint64_t choices = 1;
  for (int i = 1; i <= std::min(count, of - count); ++i) {
    choices = choices * static_cast<uint64_t>(of - i + 1) / static_cast<uint64_t>(i);
    if (choices > kMaxMasksOfWidth) {
      return kMaxMasksOfWidth + 1;
    }
  }
  return choices;
}

struct RankedMask {
  uint64_t distance = 0;  ///< sum over all ordered pairs
  std::vector<int> nodes;
};

/// Candidates by position, with their distances both ways added up.
class MaskEnumerator {
 public:
  MaskEnumerator(const Machine& machine, const NumaMask& candidates)
      : ids_(candidates.begin(), candidates.end()) {
    for (const int from : ids_) {
      std::vector<uint64_t>& row = distances_.emplace_back();
      for (const int to : ids_) {
        row.push_back(from == to ? machine.Distance(from, to)
                                 : machine.Distance(from, to) + machine.Distance(to, from));
      }
    }
  }

  /// Every mask of `width`.
  std::vector<RankedMask> All(int width) {
    masks_.clear();
    RankedMask mask;
    Extend(mask, 0, width);
    return std::move(masks_);
  }

  /// For each node the mask that grows from it by the node that adds the least distance.
  std::vector<RankedMask> AroundEach(int width) const {
    std::vector<RankedMask> masks;
    for (int start = 0; start < size(); ++start) {
      RankedMask mask;
      for (int next = start; static_cast<int>(mask.nodes.size()) < width; next = Nearest(mask)) {
        mask.distance += Added(mask, next);
        mask.nodes.push_back(next);
      }
      std::sort(mask.nodes.begin(), mask.nodes.end());
      masks.push_back(std::move(mask));
    }
    return masks;
  }

  NumaMask MaskOf(const RankedMask& ranked) const {
    NumaMask mask;
    for (const int node : ranked.nodes) {
      mask.Add(ids_[static_cast<std::size_t>(node)]);
    }
    return mask;
  }

  int size() const { return static_cast<int>(ids_.size()); }

 private:
  uint64_t Added(const RankedMask& mask, int node) const {
    const std::vector<uint64_t>& row = distances_[static_cast<std::size_t>(node)];
    uint64_t added = row[static_cast<std::size_t>(node)];
    for (const int other : mask.nodes) {
      added += row[static_cast<std::size_t>(other)];
    }
    return added;
  }

  int Nearest(const RankedMask& mask) const {
    int nearest = -1;
    uint64_t least = 0;
    for (int node = 0; node < size(); ++node) {
      if (std::find(mask.nodes.begin(), mask.nodes.end(), node) != mask.nodes.end()) {
        continue;
      }
      const uint64_t added = Added(mask, node);
      if (nearest < 0 || added < least) {
        nearest = node;
        least = added;
      }
    }
    return nearest;
  }

  void Extend(RankedMask& mask, int from, int missing) {
    if (missing == 0) {
      masks_.push_back(mask);
      return;
    }
    for (int node = from; node + missing <= size(); ++node) {
      const uint64_t before = mask.distance;
      mask.distance += Added(mask, node);
      mask.nodes.push_back(node);
      Extend(mask, node + 1, missing - 1);
      mask.nodes.pop_back();
      mask.distance = before;
    }
  }

  std::vector<int> ids_;
  std::vector<std::vector<uint64_t>> distances_;
  std::vector<RankedMask> masks_;
};

/// Closest first; then the smaller number, which is decided by the highest node that differs.
bool ClosestFirst(const RankedMask& a, const RankedMask& b) {
  if (a.distance != b.distance) {
    return a.distance < b.distance;
  }
  return std::lexicographical_compare(a.nodes.rbegin(), a.nodes.rend(), b.nodes.rbegin(),
                                      b.nodes.rend());
}

double AmountOf(const std::map<int, double>& amounts, int node) {
  const auto found = amounts.find(node);
  return found == amounts.end() ? 0 : found->second;
}

/// The fewest nodes of `mask` that hold `amount` together, or 0 when all do not.
int NarrowestWidth(const NumaMask& mask, const std::map<int, double>& amounts, double amount) {
  std::vector<double> sorted;
  for (const int node : mask) {
    sorted.push_back(AmountOf(amounts, node));
  }
  std::sort(sorted.rbegin(), sorted.rend());
  double sum = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sum += sorted[i];
    if (sum >= amount) {
      return static_cast<int>(i) + 1;
    }
  }
  return 0;
}

}  // namespace

void VisitMasks(const Machine& machine, const NumaMask& candidates, int width,
                const std::function<bool(const NumaMask&)>& visit) {
  MaskEnumerator enumerator(machine, candidates);
  if (width < 1 || width > enumerator.size()) {
    return;
  }
  std::vector<RankedMask> masks = Choices(enumerator.size(), width) <= kMaxMasksOfWidth
                                      ? enumerator.All(width)
                                      : enumerator.AroundEach(width);
  std::sort(masks.begin(), masks.end(), ClosestFirst);
  const auto same = [](const RankedMask& a, const RankedMask& b) { return a.nodes == b.nodes; };
  masks.erase(std::unique(masks.begin(), masks.end(), same), masks.end());
  for (const RankedMask& mask : masks) {
    if (!visit(enumerator.MaskOf(mask))) {
      return;
    }
  }
}

HintList GenerateHints(const Machine& machine, double amount, const NodeAmounts& nodes,
                       const HintGenerationOptions& options) {
  if (amount <= 0) {
    return HintList::NoPreference();
  }
  const int preferred_width = NarrowestWidth(machine.node_mask(), nodes.total, amount);
  const int narrowest = NarrowestWidth(machine.node_mask(), nodes.free, amount);
  const int all = machine.node_mask().Count();
  const int widest = options.max_nodes > 0 ? std::min(options.max_nodes, all) : all;
  const auto limit = static_cast<std::size_t>(std::max(options.max_hints, 1));

  std::vector<TopologyHint> hints;
  for (int width = narrowest; narrowest > 0 && width <= widest && hints.size() < limit; ++width) {
    VisitMasks(machine, machine.node_mask(), width, [&](const NumaMask& mask) {
      double free = 0;
      for (const int node : mask) {
        free += AmountOf(nodes.free, node);
      }
      if (free >= amount) {
        hints.push_back({.nodes = mask, .preferred = width == preferred_width});
      }
      return hints.size() < limit;
    });
  }
  return HintList(std::move(hints));
}

}  // namespace qrm
