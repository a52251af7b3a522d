// What a plugin says it changed.
#pragma once

#include <string>

#include "api/resource.h"

namespace qrm::sdk {

/// Containers whose allocations changed since an earlier answer, and perhaps more, with what they
/// hold now; those that hold nothing any more are left out.
struct ChangedAllocations {
  std::string now;  ///< to ask by the next time
  AllocationByContainer changed;
};

}  // namespace qrm::sdk
