// The allocations that a plugin reports of all containers, their changes, and the differences of
// two such answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/pod_set.h"
#include "api/resource.h"

namespace qrm::sdk {

/// A container's allocation of a resource.
struct HeldAllocation {
  ContainerKey key;
  SharedText resource;
  Shared<ResourceAllocation> allocation;

  bool operator==(const HeldAllocation&) const = default;
};

/// Sorted by key, then by resource.
using HeldList = std::vector<HeldAllocation>;

/// One answer to GetResourcesAllocation; copies share its data. Never null.
using HeldAllocations = std::shared_ptr<const HeldList>;

HeldAllocations ToHeld(const AllocationByContainer& allocations);

/// The allocations of `pods` in `held`. Cost: O(pods log held).
HeldAllocations HeldOf(const HeldList& held, const PodSet& pods);

/// The pods whose allocations differ between `before` and `now`. Cost: O(both); none if both are
/// the same list.
PodSet PodsUnlike(const HeldList& before, const HeldList& now);

/// The containers whose allocations changed since an earlier answer, with their current
/// allocations. Other containers may be included; containers without allocations are left out.
struct ChangedAllocations {
  std::string now;  ///< pass this in the next request
  AllocationByContainer changed;
};

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

namespace qrm::calls {

using sdk::HeldAllocation;
using sdk::HeldAllocations;
using sdk::HeldList;
using sdk::HeldOf;
using sdk::PodsUnlike;
using sdk::ToHeld;

}  // namespace qrm::calls
