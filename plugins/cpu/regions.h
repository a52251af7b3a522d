// Where elastic pools may have CPUs, and how many of them fit there.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// By pool, the CPUs that its rule of place lets it have.
using Regions = std::map<std::string, CpuSet>;

/// The rule of place of `pool`, near to the devices of its containers, too.
PlaceRule RuleOf(const View& view, const std::string& pool, const PoolAsk& ask);

/// Those of `shared` for each pool of `asks`. A pool that must stay on one NUMA node stays where
/// most of its CPUs are; one without CPUs goes to the node that its rule prefers among those with
/// room for what is wished for there, within the hint of `newcomer` (null for none).
Regions RegionsOf(const View& view, const PoolAsks& asks, const CpuSet& shared,
                  const Newcomer* newcomer);

/// As SettlePools, when each pool can have no more than `regions` leave it: those of a smaller
/// region get there what that pool of them is due, before all share `capacity`.
PoolSizes SizesWithin(PoolAsks asks, const Regions& regions,
                      const std::map<std::string, PoolHeld>& held, int capacity);

/// The number of CPUs of `shared` in the largest region that `rule` requires, wherever devices of
/// containers are.
int LargestRegion(const Machine& machine, PlaceRule rule, const CpuSet& shared);

/// OK when the region of `pool`, if its rule requires one, holds all that is requested of the pools
/// within. Errors: kResourceExhausted with what is requested and what there is.
Status CheckRegion(const View& view, const PoolAsks& asks, const Regions& regions,
                   const std::string& pool);

}  // namespace qrm::cpu
