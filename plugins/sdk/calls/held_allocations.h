// What a plugin says that it holds for all containers, and how two such answers differ.
#pragma once

#include <memory>

#include "api/pod_set.h"
#include "api/resource.h"
#include "plugins/sdk/held_list.h"

namespace qrm::calls {

using sdk::HeldAllocation;
using sdk::HeldList;

/// One answer to GetResourcesAllocation; copies share it. Never null.
using HeldAllocations = std::shared_ptr<const HeldList>;

HeldAllocations ToHeld(const AllocationByContainer& allocations);

/// What `held` says about `pods`. Cost: O(pods log held).
HeldAllocations HeldOf(const HeldList& held, const PodSet& pods);

/// The pods about which `before` and `now` differ. Cost: O(both); none for one list.
PodSet PodsUnlike(const HeldList& before, const HeldList& now);

}  // namespace qrm::calls
