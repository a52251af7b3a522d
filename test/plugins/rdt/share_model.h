// A second implementation of goresctrl's rules, to compare with: sets of bits instead of arithmetic
// on masks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace qrm::test {

/// `percent` from `low` to `high`, else the bits from `low` to `high`.
struct ModelShare {
  bool percent = true;
  int low = 1;
  int high = 100;
};

/// The request of one partition for one cache, and its classes; nothing: no request.
struct ModelPartition {
  std::string name;
  std::optional<ModelShare> share;
  std::map<std::string, std::optional<ModelShare>> classes;
};

using BitSet = std::set<int>;

/// Class -> its bits of a cache with `bits` bits, of which a group has at least `least`; nothing
/// where the rules reject it.
std::optional<std::map<std::string, BitSet>> ModelBits(
    const std::vector<ModelPartition>& partitions, int bits, int least);

}  // namespace qrm::test
