// The allocations that a plugin reports, and their changes.
#pragma once

#include <string>
#include <vector>

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

/// The containers whose allocations changed since an earlier answer, with their current
/// allocations. Other containers may be included; containers without allocations are left out.
struct ChangedAllocations {
  std::string now;  ///< pass this in the next request
  AllocationByContainer changed;
};

}  // namespace qrm::sdk
