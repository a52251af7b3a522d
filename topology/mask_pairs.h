// Intersects every mask of one set with every mask of another at once, on machines of few nodes.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace qrm
