// Finds room along paths of holders that make way.
#include "topology/memory_flow.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace qrm {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

std::size_t PlaceOf(const std::vector<std::size_t>& sorted, std::size_t value) {
  return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                  sorted.begin());
}

}  // namespace

MemoryFlow::MemoryFlow(const NodeBytes& free) {
  for (const auto& [id, bytes] : free) {
    ids_.push_back(id);
    free_.push_back(bytes);
  }
}

std::size_t MemoryFlow::Add(const NumaMask& nodes, const NodeBytes& parts) {
  Holder holder{.nodes = PositionsOf(nodes)};
  for (const std::size_t node : holder.nodes) {
    const auto part = parts.find(ids_[node]);
    holder.parts.push_back(part == parts.end() ? 0 : part->second);
  }
  holders_.push_back(std::move(holder));
  return holders_.size() - 1;
}

uint64_t MemoryFlow::Grow(std::size_t holder, uint64_t bytes) {
  uint64_t grown = 0;
  while (grown < bytes) {
    const uint64_t part = Route(holder, bytes - grown);
    if (part == 0) {
      break;
    }
    grown += part;
  }
  return grown;
}

std::optional<std::size_t> MemoryFlow::Take(const NumaMask& nodes, uint64_t bytes) {
  if (FreeAround(PositionsOf(nodes)) < bytes) {
    return std::nullopt;
  }
  MemoryFlow tried = *this;
  const std::size_t holder = tried.Add(nodes, {});
  if (tried.Grow(holder, bytes) < bytes) {
    return std::nullopt;
  }
  *this = std::move(tried);
  return holder;
}

bool MemoryFlow::Fits(const NumaMask& nodes, uint64_t bytes) const {
  return FreeOn(nodes) >= bytes || MemoryFlow(*this).Take(nodes, bytes).has_value();
}

uint64_t MemoryFlow::Room(const NumaMask& nodes) const {
  if (holders_.empty()) {  // no holder that could make way
    return FreeOn(nodes);
  }
  MemoryFlow tried = *this;
  return tried.Grow(tried.Add(nodes, {}), std::numeric_limits<uint64_t>::max());
}

NodeBytes MemoryFlow::PartsOf(std::size_t holder) const {
  NodeBytes parts;
  const Holder& found = holders_[holder];
  for (std::size_t i = 0; i < found.nodes.size(); ++i) {
    parts[ids_[found.nodes[i]]] = found.parts[i];
  }
  return parts;
}

uint64_t MemoryFlow::Free(int node) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), node);
  return found == ids_.end() || *found != node
             ? 0
             : free_[static_cast<std::size_t>(found - ids_.begin())];
}

uint64_t MemoryFlow::FreeOn(const NumaMask& nodes) const {
  return std::accumulate(nodes.begin(), nodes.end(), uint64_t{0},
                         [this](uint64_t sum, int node) { return sum + Free(node); });
}

std::vector<std::size_t> MemoryFlow::PositionsOf(const NumaMask& nodes) const {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (nodes.Has(ids_[i])) {
      positions.push_back(i);
    }
  }
  return positions;
}

/// What is free on all nodes to which holders could make way: no less than what Take can give.
uint64_t MemoryFlow::FreeAround(const std::vector<std::size_t>& starts) const {
  uint64_t free = 0;
  Search(starts, [&](std::size_t node, const std::vector<Step>&) {
    free += free_[node];
    return true;
  });
  return free;
}

/// Calls `visit(node, steps)` for `starts` and all nodes to which parts on them can be moved, the
/// shortest ways first, until it returns false. Ways lead from a node's step back to a start's.
template <typename Visit>
void MemoryFlow::Search(const std::vector<std::size_t>& starts, const Visit& visit) const {
  std::vector<Step> steps(ids_.size());
  std::vector<bool> seen(ids_.size(), false);
  std::vector<bool> asked(holders_.size(), false);
  std::vector<std::size_t> queue = starts;
  for (const std::size_t start : starts) {
    seen[start] = true;
    steps[start].from = kNone;
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::size_t node = queue[next];
    if (!visit(node, steps)) {
      return;
    }
    for (std::size_t h = 0; h < holders_.size(); ++h) {
      const Holder& holder = holders_[h];
      const std::size_t part = PlaceOf(holder.nodes, node);
      if (asked[h] || part == holder.nodes.size() || holder.nodes[part] != node ||
          holder.parts[part] == 0) {
        continue;
      }
      asked[h] = true;  // a holder with a part here reaches all of its nodes
      for (const std::size_t other : holder.nodes) {
        if (!seen[other]) {
          seen[other] = true;
          steps[other] = {.from = node, .holder = h, .part = part};
          queue.push_back(other);
        }
      }
    }
  }
}

/// Gives `holder` up to `bytes` along the shortest way to something free; 0 when there is none.
uint64_t MemoryFlow::Route(std::size_t holder, uint64_t bytes) {
  std::vector<std::size_t> way;  // the node with something free, then back to one of the holder's
  std::vector<Step> steps;
  Search(holders_[holder].nodes, [&](std::size_t node, const std::vector<Step>& found) {
    if (free_[node] == 0) {
      return true;
    }
    steps = found;
    for (std::size_t at = node; at != kNone; at = found[at].from) {
      way.push_back(at);
    }
    return false;
  });
  if (way.empty()) {
    return 0;
  }
  uint64_t moved = std::min(bytes, free_[way.front()]);
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    const Step& step = steps[way[i]];
    moved = std::min(moved, holders_[step.holder].parts[step.part]);
  }
  free_[way.front()] -= moved;
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    const Step& step = steps[way[i]];
    Holder& other = holders_[step.holder];
    other.parts[step.part] -= moved;
    other.parts[PlaceOf(other.nodes, way[i])] += moved;
  }
  Holder& taker = holders_[holder];
  taker.parts[PlaceOf(taker.nodes, way.back())] += moved;
  return moved;
}

}  // namespace qrm
