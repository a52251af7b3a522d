// What a plugin says it holds.
#pragma once

#include <vector>

#include "api/resource.h"

namespace qrm::sdk {

/// What a container has of a resource.
struct HeldAllocation {
  ContainerKey key;
  SharedText resource;
  Shared<ResourceAllocation> allocation;

  bool operator==(const HeldAllocation&) const = default;
};

/// In the order of the keys, and of the resources.
using HeldList = std::vector<HeldAllocation>;

}  // namespace qrm::sdk
