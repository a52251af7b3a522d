// Elastic pools: as large as their containers ask for, within bounds.
#pragma once

#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// A container that is to use a pool.
struct Candidate {
  ContainerKey key;
  Guest guest;
  NumaMask hint;  ///< nodes that were chosen for it; empty: any

  bool operator==(const Candidate&) const = default;
};

/// The pools of `view` when each elastic pool has what it needs (see SettlePools), as far as its
/// rule of place allows. The pools in `may_shrink` have needed less for long enough. Instances of
/// pools exist while they have containers or CPUs. CPUs stay in their pool unless a size changes,
/// or a pool needs CPUs in its region that another pool can spare. They never leave a pool of fixed
/// size.
/// Cost: O(containers + CPUs), and PickPlaced for each pool that changes.
PoolMap SizedPools(const View& view, const std::set<std::string>& may_shrink = {});

/// The same with `candidate` in its elastic pool. Errors: kResourceExhausted with the available
/// amounts, if the pool has no more instances or no room in its region. Also if `candidate` makes
/// the minimums of all elastic pools, at least one CPU for each pool in use, too large. Cost: as
/// SizedPools; a look into `view.memo`, if that has the plan.
StatusOr<PoolMap> PoolsWith(const View& view, Candidate candidate);

bool HasElasticPools(const CpuPluginConfig& config);

/// The pools of `view` when elastic pools have given up at once the CPUs that their containers do
/// not request. Cost: as SizedPools.
PoolMap PoolsAsRequested(const View& view);

/// Whether pools keep what their containers request, by other CPUs if necessary, when the container
/// of `key` gets `cpus` exclusively.
bool FitBeside(const View& view, const ContainerKey& key, const CpuSet& cpus);

/// Whether pools can want more while CPUs are idle: pools of whole units, and pools with a required
/// place. Their sizes change when others take idle CPUs.
bool LeavesSomeIdle(const CpuPluginConfig& config);

/// The elastic pools that have more CPUs than they need.
std::set<std::string> PoolsWithSurplus(const View& view);

/// OK when the machine has the minimums of all elastic pools besides reserved CPUs and pools of
/// fixed size. Errors: kInvalidArgument with both numbers.
Status CheckMinimums(const View& view);

}  // namespace qrm::cpu
