// The CPUs that elastic pools may have, and how many of them each pool gets there.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// By pool, the CPUs that its rule of place allows.
using Regions = std::map<std::string, CpuSet>;

/// The rule of place of `pool`, including nearness to the devices of its containers.
PlaceRule RuleOf(const View& view, const std::string& pool, const PoolAsk& ask);

/// The part of `shared` for each pool of `asks`. A pool that must stay on one NUMA node stays where
/// most of its CPUs are. A pool without CPUs goes to the node that its rule prefers. This node must
/// have room for its wish, and be in the hint of `candidate` (null for none).
Regions RegionsOf(const View& view, const PoolAsks& asks, const CpuSet& shared,
                  const Candidate* candidate);

/// As SettlePools, with each pool limited to its region. Pools of a smaller region get their due
/// there first; then all pools share `capacity`.
PoolSizes SizesWithin(PoolAsks asks, const Regions& regions,
                      const std::map<std::string, PoolHeld>& held, int capacity);

/// The number of CPUs of `shared` in the largest region that `rule` requires, wherever containers'
/// devices are.
int LargestRegion(const Machine& machine, PlaceRule rule, const CpuSet& shared);

/// OK when the region of `pool`, if its rule requires one, has all CPUs that are requested from the
/// pools within. Errors: kResourceExhausted with the requested and the available CPUs.
Status CheckRegion(const View& view, const PoolAsks& asks, const Regions& regions,
                   const std::string& pool);

}  // namespace qrm::cpu
