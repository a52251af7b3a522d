// The allocations that a plugin reports.
#pragma once

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

}  // namespace qrm::sdk
