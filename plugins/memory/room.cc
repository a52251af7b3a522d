// Searches sets of NUMA nodes for room in the books.
#include "plugins/memory/room.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "plugins/rules/select.h"
#include "topology/hint_generation.h"

namespace qrm::memory {
namespace {

using rules::NumaSpan;

constexpr std::size_t kMaxHints = 4096;

rules::TenantsByNode TenantsOf(const Bindings& bindings) {
  rules::TenantsByNode tenants;
  for (const auto& [key, binding] : bindings) {
    for (const MemoryBlock& block : binding.blocks) {
      for (const int node : block.nodes) {
        tenants[node].push_back(&binding.tenant);  // once for each block, which does no harm
      }
    }
  }
  return tenants;
}

/// One search for masks of `allowed` nodes.
class Search {
 public:
  Search(const Machine& machine, const Room& room, const Need& need, NumaMask allowed)
      : machine_(machine), room_(room), need_(need), allowed_(std::move(allowed)) {
    // Hugepages alone need no ordinary memory, but the container is bound with them.
    uint64_t& ordinary = need_.bytes[kOrdinaryMemory];
    ordinary = std::max(ordinary, uint64_t{1});
    for (const auto& [type, bytes] : need_.bytes) {
      for (const auto& [id, node] : room_.books.table()) {
        room_of_[type][id] = room_.barred.Has(id) ? 0 : room_.books.Room({id}, type);
      }
    }
  }

  std::vector<TopologyHint> Run() const {
    const NumaMask candidates = Candidates();
    if (candidates.Empty()) {
      return {};
    }
    const ClosestMasks masks(machine_, candidates);
    const int preferred_width = PreferredWidth();
    const int narrowest = NarrowestByRoom(candidates);
    int widest = need_.span == NumaSpan::kOne ? 1 : masks.size();
    std::vector<TopologyHint> hints;
    for (int width = narrowest; width <= widest && hints.size() < kMaxHints; ++width) {
      const auto offer = [&](const NumaMask& mask) {
        if (room_.books.Fit(BlocksOn(mask, need_))) {
          hints.push_back({.nodes = mask, .preferred = width == preferred_width});
        }
        return hints.size() < kMaxHints;
      };
      masks.Visit(width, offer);
      if (width == narrowest && hints.empty()) {
        offer(Richest(candidates, room_of_.at(kOrdinaryMemory),
                      width));  // ClosestMasks leaves out many masks of many nodes
      }
      if (!hints.empty() && need_.span != NumaSpan::kOne) {
        widest = masks.WidestWorthOffering(hints.front().nodes.Count());
      }
    }
    return hints;
  }

 private:
  /// Not candidates are nodes with a container that excludes this one and, if there are many nodes,
  /// nodes without any of the needed memory.
  NumaMask Candidates() const {
    constexpr int kMaxPlainNodes = 12;
    NumaMask candidates;
    for (const auto& node : room_.books.table()) {
      const int id = node.first;
      const bool has_some = machine_.node_mask().Count() <= kMaxPlainNodes ||
                            std::ranges::any_of(room_of_, [id](const auto& of_type) {
                              return of_type.second.at(id) > 0;
                            });
      if (allowed_.Has(id) && !room_.barred.Has(id) && has_some) {
        candidates.Add(id);
      }
    }
    return candidates;
  }

  /// Fewer nodes are not enough: a mask has no more room than its nodes have one by one.
  int NarrowestByRoom(const NumaMask& candidates) const {
    int narrowest = 1;
    for (const auto& [type, bytes] : need_.bytes) {
      std::vector<uint64_t> amounts;
      for (const int node : candidates) {
        amounts.push_back(room_of_.at(type).at(node));
      }
      narrowest = std::max(narrowest, FewestOf(std::move(amounts), bytes));
    }
    return narrowest;
  }

  /// As many as an empty machine would need, regardless of exclusions.
  int PreferredWidth() const {
    const MemoryTable& table = room_.books.table();
    int width = 1;
    for (const auto& [type, bytes] : need_.bytes) {
      std::vector<uint64_t> amounts;
      for (const int node : allowed_) {
        amounts.push_back(Sum(table, {node}, type, &MemoryAmounts::allocatable));
      }
      width = std::max(width, FewestOf(std::move(amounts), bytes));
    }
    if (need_.bytes.size() == 1) {
      return width;
    }
    // The richest in one type may be the poorest in another.
    const ClosestMasks masks(machine_, allowed_);
    for (bool found = false; width <= masks.size(); width += found ? 0 : 1) {
      masks.Visit(width, [&](const NumaMask& mask) {
        found = std::ranges::all_of(need_.bytes, [&](const auto& asked) {
          return Sum(table, mask, asked.first, &MemoryAmounts::allocatable) >= asked.second;
        });
        return !found;
      });
      if (found) {
        break;
      }
    }
    return width;
  }

  const Machine& machine_;
  const Room& room_;
  Need need_;
  const NumaMask allowed_;
  std::map<std::string, std::map<int, uint64_t>> room_of_;  // by type and single node
};

/// "4096" or, if hugepages are also requested, "4096 of memory and 0 of hugepages-1Gi".
std::string FreeText(const Books& books, const NumaMask& nodes, const MemoryBytes& asked) {
  std::vector<std::string> parts;
  for (const auto& [type, bytes] : asked) {
    parts.push_back(fmt::format("{} of {}", books.Room(nodes, type), type));
  }
  const bool ordinary_only =
      asked.empty() || (asked.size() == 1 && asked.begin()->first == kOrdinaryMemory);
  return ordinary_only ? fmt::to_string(books.Room(nodes, kOrdinaryMemory))
                       : fmt::format("{}", fmt::join(parts, " and "));
}

std::string AskedText(const MemoryBytes& asked) {
  std::vector<std::string> parts;
  for (const auto& [type, bytes] : asked) {
    parts.push_back(fmt::format("{} bytes of {}", bytes, type));
  }
  return parts.empty() ? "0 bytes of memory" : fmt::format("{}", fmt::join(parts, " and "));
}

/// Whether `nodes` have less together than one by one: a container on several of them can make way
/// on each, but not on all.
bool HaveLessTogether(const Books& books, const NumaMask& nodes, const MemoryBytes& asked) {
  return std::ranges::any_of(asked, [&](const auto& of_type) {
    uint64_t one_by_one = 0;
    for (const int node : nodes) {
      one_by_one += books.Room({node}, of_type.first);
    }
    return books.Room(nodes, of_type.first) < one_by_one;
  });
}

}  // namespace

Room FindRoom(const View& view, const rules::Tenant& tenant) {
  return {.tenant = tenant,
          .barred = BarredNodes(TenantsOf(view.bindings), tenant),
          .books = Books(view)};
}

std::vector<MemoryBlock> BlocksOn(const NumaMask& nodes, const Need& need) {
  const auto asked = need.bytes.find(kOrdinaryMemory);
  uint64_t left = asked == need.bytes.end() ? 0 : asked->second;
  std::vector<MemoryBlock> blocks;
  if (need.span == NumaSpan::kEven) {
    auto nodes_left = static_cast<uint64_t>(nodes.Count());
    for (const int node : nodes) {
      const uint64_t share = (left + nodes_left - 1) / nodes_left;
      --nodes_left;
      blocks.push_back({.nodes = {node}, .type = kOrdinaryMemory, .bytes = share});
      left -= share;
    }
  } else {
    blocks.push_back({.nodes = nodes, .type = kOrdinaryMemory, .bytes = left});
  }
  for (const auto& [type, bytes] : need.bytes) {
    if (type != kOrdinaryMemory) {
      blocks.push_back({.nodes = nodes, .type = type, .bytes = bytes});
    }
  }
  return blocks;
}

std::vector<Spot> SpotsOn(const Machine& machine, const std::vector<MemoryKind>& kinds,
                          const TopologyHint& fitting) {
  if (kinds.empty()) {
    return {{fitting.nodes, fitting}};
  }
  NumaMask beside;
  for (const int node : fitting.nodes) {
    beside |= machine.FindNode(node)->homes;
  }
  if (fitting.nodes.Count() > 1) {
    return {{fitting.nodes, {.nodes = beside, .preferred = fitting.preferred}}};
  }
  std::vector<Spot> spots;
  for (const int home : beside) {
    spots.push_back({fitting.nodes, {.nodes = {home}, .preferred = fitting.preferred}});
  }
  return spots;
}

std::vector<Spot> FittingSpots(const Machine& machine, const Room& room, const Need& need) {
  std::vector<Spot> spots;
  const auto search = [&](const NumaMask& nodes) {
    const bool is_first = spots.empty();
    for (TopologyHint& fitting : Search(machine, room, need, nodes).Run()) {
      fitting.preferred &= is_first;
      std::vector<Spot> more = SpotsOn(machine, need.kinds, fitting);
      std::move(more.begin(), more.end(), std::back_inserter(spots));
    }
  };
  if (need.kinds.empty()) {
    search(machine.node_mask());
  }
  for (const MemoryKind kind : need.kinds) {
    search(NodesOfKinds(machine, {kind}));
  }
  return spots;
}

std::vector<TopologyHint> HintsOf(const std::vector<Spot>& spots) {
  const bool beside =
      std::ranges::any_of(spots, [](const Spot& spot) { return spot.nodes != spot.hint.nodes; });
  std::vector<TopologyHint> hints;
  hints.reserve(spots.size());
  std::set<std::string> seen;
  for (const Spot& spot : spots) {
    if (!beside || seen.insert(ToString(spot.hint.nodes)).second) {
      hints.push_back(spot.hint);
    }
  }
  return hints;
}

NumaMask NodesOfKinds(const Machine& machine, const std::vector<MemoryKind>& kinds) {
  NumaMask nodes;
  for (const NumaNode& node : machine.nodes()) {
    if (kinds.empty() || std::ranges::find(kinds, node.memory_kind) != kinds.end()) {
      nodes.Add(node.id);
    }
  }
  return nodes;
}

std::string TextOf(const std::vector<MemoryKind>& kinds) {
  std::vector<std::string_view> words;
  words.reserve(kinds.size());
  for (const MemoryKind kind : kinds) {
    words.push_back(WordOf(kind));
  }
  return fmt::format("{}", fmt::join(words, " or "));
}

Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within, const std::vector<MemoryKind>& kinds) {
  const MemoryBytes asked = BytesOf(request).value_or(MemoryBytes());
  const rules::TenantsByNode tenants = TenantsOf(view.bindings);
  std::vector<std::string> parts;
  NumaMask open;
  for (const int id : NodesOfKinds(view.machine, kinds)) {
    if (!room.barred.Has(id)) {
      open.Add(id);
      parts.push_back(fmt::format("node {}: {} free", id, FreeText(room.books, {id}, asked)));
      continue;
    }
    parts.push_back(fmt::format("node {}: occupied by {}", id,
                                rules::NameOfEnemy(tenants.at(id), room.tenant)));
  }
  if (HaveLessTogether(room.books, open, asked)) {
    parts.push_back(
        fmt::format("nodes {} together: {}", ToString(open), FreeText(room.books, open, asked)));
  }
  return Errorf(StatusCode::kResourceExhausted,
                "cannot place {}: no allowed NUMA nodes{}{} have {} for {}; request less or delete "
                "a pod ({})",
                rules::NameOf(request),
                within.Empty() ? "" : fmt::format(" of {}", ToString(within)),
                kinds.empty() ? "" : fmt::format(" with {}", TextOf(kinds)), AskedText(asked),
                rules::NameOf(room.tenant),
                parts.empty() ? "the machine has none" : fmt::format("{}", fmt::join(parts, ", ")));
}

}  // namespace qrm::memory
