// Names for the types of hugepages that rows have.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "topology/node_memory.h"

namespace qrm::vectors {

/// The names of a row's types of hugepages and those of the plugin, which follow from their size.
/// Rows have names that no size has, so that each gets a size that its amounts are multiples of.
class TypeNames {
 public:
  /// Gives `type` a size that `divisor` is a multiple of, and that no other type has.
  void Add(const std::string& type, uint64_t divisor);

  uint64_t SizeOf(const std::string& type) const { return sizes_.at(type); }
  std::string ToPlugin(const std::string& type) const;
  std::string ToRow(const std::string& name) const;

 private:
  std::map<std::string, uint64_t> sizes_;
  std::map<std::string, std::string> names_;
  std::set<uint64_t> used_;
};

}  // namespace qrm::vectors
