// Enumerates masks width by width, bounded in number.
#include "topology/hint_generation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace qrm {
namespace {

constexpr uint64_t kMaxMasksOfWidth = 4096;
/// Up to so many nodes every mask is offered, useful or not, as kubelet does.
constexpr int kMaxPlainNodes = 12;

/// How many masks of `count` out of `of` nodes there are, or more than kMaxMasksOfWidth.
uint64_t CombinationCount(int of, int count) {
  uint64_t choices = 1;
  for (int i = 1; i <= std::min(count, of - count); ++i) {
    choices = choices * static_cast<uint64_t>(of - i + 1) / static_cast<uint64_t>(i);
    if (choices > kMaxMasksOfWidth) {
      return kMaxMasksOfWidth + 1;
    }
  }
  return choices;
}

/// The fewest nodes of `mask` that hold `amount` together, as FewestOf.
int NarrowestWidth(const NumaMask& mask, const std::map<int, double>& amounts, double amount) {
  std::vector<double> all;
  for (const int node : mask) {
    all.push_back(AmountOf(amounts, node));
  }
  return FewestOf(std::move(all), amount);
}

NumaMask NodesWith(const NumaMask& nodes, const std::map<int, double>& amounts) {
  NumaMask some;
  for (const int node : nodes) {
    if (AmountOf(amounts, node) > 0) {
      some.Add(node);
    }
  }
  return some;
}

}  // namespace

ClosestMasks::ClosestMasks(const Machine& machine, const NumaMask& candidates)
    : ids_(candidates.begin(), candidates.end()) {
  for (const int from : ids_) {
    for (const int to : ids_) {
      const uint64_t there = machine.Distance(from, to);
      distances_.push_back(from == to ? there : there + machine.Distance(to, from));
    }
  }
}

std::vector<int> ClosestMasks::GrowFrom(int start) const {
  std::vector<uint64_t> added(ids_.size(), 0);  // distance from each node to those chosen
  std::vector<bool> chosen(ids_.size(), false);
  std::vector<int> order;
  for (int next = start; next >= 0;) {
    order.push_back(next);
    chosen[static_cast<std::size_t>(next)] = true;
    const int last = next;
    next = -1;
    for (int node = 0; node < size(); ++node) {
      const auto i = static_cast<std::size_t>(node);
      added[i] += Between(last, node);
      if (!chosen[i] && (next < 0 || added[i] < added[static_cast<std::size_t>(next)])) {
        next = node;
      }
    }
  }
  return order;
}

void ClosestMasks::Put(int node, Ranked& mask) const {
  mask.nodes.push_back(node);
  for (const int other : mask.nodes) {
    mask.distance += Between(node, other);
  }
}

void ClosestMasks::Extend(Ranked& mask, int from, int missing, std::vector<Ranked>& all) const {
  if (missing == 0) {
    all.push_back(mask);
    return;
  }
  for (int node = from; node + missing <= size(); ++node) {
    const uint64_t before = mask.distance;
    Put(node, mask);
    Extend(mask, node + 1, missing - 1, all);
    mask.nodes.pop_back();
    mask.distance = before;
  }
}

std::vector<ClosestMasks::Ranked> ClosestMasks::AroundEach(int width) const {
  for (int start = static_cast<int>(growth_.size()); start < size(); ++start) {
    growth_.push_back(GrowFrom(start));
  }
  std::vector<Ranked> masks;
  for (const std::vector<int>& order : growth_) {
    Ranked& mask = masks.emplace_back();
    for (int i = 0; i < width; ++i) {
      Put(order[static_cast<std::size_t>(i)], mask);
    }
    std::ranges::sort(mask.nodes);
  }
  return masks;
}

bool ClosestMasks::KnowsAll(int width) const {
  return CombinationCount(size(), width) <= kMaxMasksOfWidth;
}

void ClosestMasks::Visit(int width, const std::function<bool(const NumaMask&)>& visit) const {
  if (width < 1 || width > size()) {
    return;
  }
  std::vector<Ranked> masks;
  if (KnowsAll(width)) {
    Ranked mask;
    Extend(mask, 0, width, masks);
  } else {
    masks = AroundEach(width);
  }
  // The smaller number is decided by the highest node that differs.
  std::ranges::sort(masks, [](const Ranked& a, const Ranked& b) {
    return a.distance != b.distance
               ? a.distance < b.distance
               : std::lexicographical_compare(a.nodes.rbegin(), a.nodes.rend(), b.nodes.rbegin(),
                                              b.nodes.rend());
  });
  const auto same = [](const Ranked& a, const Ranked& b) { return a.nodes == b.nodes; };
  masks.erase(std::unique(masks.begin(), masks.end(), same), masks.end());
  for (const Ranked& ranked : masks) {
    NumaMask mask;
    for (auto node = ranked.nodes.rbegin(); node != ranked.nodes.rend(); ++node) {
      mask.Add(ids_[static_cast<std::size_t>(*node)]);
    }
    if (!visit(mask)) {
      return;
    }
  }
}

int ClosestMasks::WidestWorthOffering(int narrowest) const {
  return size() <= kMaxPlainNodes ? size() : std::min(narrowest + 1, size());
}

HintList GenerateHints(const Machine& machine, double amount, const NodeAmounts& nodes,
                       const HintGenerationOptions& options) {
  if (amount <= 0) {
    return HintList::NoPreference();
  }
  const NumaMask& all = machine.node_mask();
  const int preferred_width = NarrowestWidth(all, nodes.total, amount);
  const int narrowest = NarrowestWidth(all, nodes.free, amount);
  if (narrowest > all.Count()) {
    return HintList::Impossible();
  }
  const NumaMask candidates = all.Count() <= kMaxPlainNodes ? all : NodesWith(all, nodes.free);
  const ClosestMasks masks(machine, candidates);
  const int widest = options.max_nodes > 0 ? std::min(options.max_nodes, masks.size())
                                           : masks.WidestWorthOffering(narrowest);
  const auto limit = static_cast<std::size_t>(std::max(options.max_hints, 1));

  std::vector<TopologyHint> hints;
  for (int width = narrowest; width <= widest && hints.size() < limit; ++width) {
    masks.Visit(width, [&](const NumaMask& mask) {
      double free = 0;
      for (const int node : mask) {
        free += AmountOf(nodes.free, node);
      }
      if (free >= amount) {
        hints.push_back({.nodes = mask, .preferred = width == preferred_width});
      }
      return hints.size() < limit;
    });
    if (width == narrowest && hints.empty()) {
      hints.push_back(
          {.nodes = Richest(candidates, nodes.free, width), .preferred = width == preferred_width});
    }
  }
  return HintList(std::move(hints));
}

}  // namespace qrm
