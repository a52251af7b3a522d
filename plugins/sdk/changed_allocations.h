// The changes that a plugin reports.
#pragma once

#include <string>

#include "api/resource.h"

namespace qrm::sdk {

/// The containers whose allocations changed since an earlier answer, with their current
/// allocations. Other containers may be included; containers without allocations are left out.
struct ChangedAllocations {
  std::string now;  ///< pass this in the next request
  AllocationByContainer changed;
};

}  // namespace qrm::sdk
