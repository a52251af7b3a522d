// Whether all who hold memory within sets of NUMA nodes can have it at once, though the sets
// overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/id_set.h"

namespace qrm {

/// Bytes by the kernel's node number.
using NodeBytes = std::map<int, uint64_t>;

/// One type of memory. The memory of each holder is split over the nodes that it may use. A holder
/// of several nodes makes way for holders of fewer nodes, so that a request fits exactly when no
/// union of nodes is promised more than it has: Hall's condition. The split proves that.
///
/// Threads: one at a time. Units: bytes; the kernel's node numbers.
/// Cost:    O(holders x nodes) for a request that finds its nodes full; such a search follows one
///          path of holders that make way, and there are at most holders x nodes paths.
/// Source:  P. Hall, "On Representatives of Subsets", and Edmonds and Karp's maximum flow.
class MemoryFlow {
 public:
  /// `free` is the memory without a holder.
  explicit MemoryFlow(const NodeBytes& free);

  /// Adds a holder of `parts`, which are no longer free, within `nodes`; all nodes are known.
  /// Returns its number, from 0.
  std::size_t Add(const NumaMask& nodes, const NodeBytes& parts);

  /// As much as possible of `bytes` more for `holder`; returns how much that is.
  uint64_t Grow(std::size_t holder, uint64_t bytes);

  /// A new holder of `bytes` within `nodes`; absent, and nothing changed, when they do not fit.
  std::optional<std::size_t> Take(const NumaMask& nodes, uint64_t bytes);

  /// Whether Take would succeed. Cost: as Take, and O(nodes) where no holder has to make way.
  bool Fits(const NumaMask& nodes, uint64_t bytes) const;

  /// The most that Take would give.
  uint64_t Room(const NumaMask& nodes) const;

  /// What `holder` has of each of its nodes, also of those of which that is nothing.
  NodeBytes PartsOf(std::size_t holder) const;

  /// The memory of `node` without a holder.
  uint64_t Free(int node) const;

 private:
  struct Holder {
    std::vector<std::size_t> nodes;  // positions, ascending
    std::vector<uint64_t> parts;     // by position in `nodes`
  };
  /// The node at `to` is filled by a part of `holder` that leaves its `part`-th node.
  struct Step {
    std::size_t from = 0;
    std::size_t holder = 0;
    std::size_t part = 0;
  };

  uint64_t FreeOn(const NumaMask& nodes) const;
  std::vector<std::size_t> PositionsOf(const NumaMask& nodes) const;
  uint64_t FreeAround(const std::vector<std::size_t>& starts) const;
  template <typename Visit>
  void Search(const std::vector<std::size_t>& starts, const Visit& visit) const;
  uint64_t Route(std::size_t holder, uint64_t bytes);

  std::vector<int> ids_;        // ascending
  std::vector<uint64_t> free_;  // by position in ids_
  std::vector<Holder> holders_;
};

/// By type, as in MemoryBytes.
using MemoryFlows = std::map<std::string, MemoryFlow>;

}  // namespace qrm
