// A plugin's reported allocations of all containers, and the differences of two such answers.
#pragma once

#include <memory>

#include "api/pod_set.h"
#include "api/resource.h"
#include "plugins/sdk/held_list.h"

namespace qrm::calls {

using sdk::HeldAllocation;
using sdk::HeldList;

/// One answer to GetResourcesAllocation; copies share its data. Never null.
using HeldAllocations = std::shared_ptr<const HeldList>;

HeldAllocations ToHeld(const AllocationByContainer& allocations);

/// The allocations of `pods` in `held`. Cost: O(pods log held).
HeldAllocations HeldOf(const HeldList& held, const PodSet& pods);

/// The pods whose allocations differ between `before` and `now`. Cost: O(both); none if both are
/// the same list.
PodSet PodsUnlike(const HeldList& before, const HeldList& now);

}  // namespace qrm::calls
