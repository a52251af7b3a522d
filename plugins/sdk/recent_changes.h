// Records the containers that a plugin changed last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm::sdk {

/// The latest changes in order, each identified by its number.
///
/// Threads: one. Cost: the memory of at most `most` keys.
class RecentChanges {
 public:
  explicit RecentChanges(std::size_t most = 128);

  void Note(const ContainerKey& key);

  /// Identifies this moment, for Since.
  std::string now() const;
  /// How many changes were noted.
  uint64_t count() const { return count_; }

  /// The containers noted since this object returned `now`; absent if `now` is too old or from
  /// another object: then anything may have changed.
  std::optional<std::set<ContainerKey>> Since(const std::string& now) const;

 private:
  const std::size_t most_;
  const std::string self_;  ///< unique among all objects and processes
  uint64_t count_ = 0;
  std::vector<ContainerKey> latest_;
};

}  // namespace qrm::sdk
