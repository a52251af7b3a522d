// Remembers which containers a plugin changed last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm::sdk {

/// The latest changes in order, each named by its number: a list that has one end in the past.
///
/// Threads: one. Cost: the memory of at most `most` keys.
class RecentChanges {
 public:
  explicit RecentChanges(std::size_t most = 128);

  void Note(const ContainerKey& key);

  /// Names this moment, for Since.
  std::string now() const;
  /// How many were noted.
  uint64_t count() const { return count_; }

  /// The containers noted after `now` was that; absent when it is too long ago, or of another
  /// object: anything may have changed.
  std::optional<std::set<ContainerKey>> Since(const std::string& now) const;

 private:
  const std::size_t most_;
  const std::string self_;  ///< no other object, of any process, has it
  uint64_t count_ = 0;
  std::vector<ContainerKey> latest_;
};

}  // namespace qrm::sdk
