// Elastic pools: as large as their containers ask for, within bounds.
#pragma once

#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// A container that is to use a pool.
struct Newcomer {
  ContainerKey key;
  Guest guest;
  NumaMask hint;  ///< nodes that were chosen for it; empty: any

  bool operator==(const Newcomer&) const = default;
};

/// The pools of `view` when each elastic one has what it needs, as SettlePools says, where its rule
/// of place lets it have that. Those of `may_shrink` have needed less for long enough. Instances of
/// pools are there while they have containers or CPUs. CPUs stay where they are unless a size
/// changes or a pool needs those of its place that another can do without; they never leave a pool
/// of one size.
/// Cost: O(containers + CPUs), and PickPlaced for each pool that changes.
PoolMap SizedPools(const View& view, const std::set<std::string>& may_shrink = {});

/// The same with `newcomer` in its pool, which is elastic. Errors: kResourceExhausted with what
/// there is, when its pool has no more instances or no room in its place, or when the minimums of
/// all elastic pools, and one CPU for each that is in use, are too much with it and were not
/// without it. Cost: as SizedPools; a look into `view.memo`, where it is known.
StatusOr<PoolMap> PoolsWith(const View& view, const Newcomer& newcomer);

bool HasElasticPools(const CpuPluginConfig& config);

/// The pools of `view` when elastic ones have given up at once what their containers do not
/// request. Cost: as SizedPools.
PoolMap PoolsAsRequested(const View& view);

/// Whether pools can want more while CPUs are idle, so that their sizes change with what others
/// take of these: those of whole units, and those of a required place.
bool LeavesSomeIdle(const CpuPluginConfig& config);

/// The elastic pools that have more CPUs than they need.
std::set<std::string> PoolsWithSurplus(const View& view);

/// OK when the machine has the minimums of all elastic pools beside what is reserved and in pools
/// of one size. Errors: kInvalidArgument with both numbers.
Status CheckMinimums(const View& view);

}  // namespace qrm::cpu
