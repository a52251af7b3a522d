// Elastic pools: as large as their containers ask for, within bounds.
#pragma once

#include <set>
#include <string>

#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// Whether `pool` is one whose size follows its containers.
bool IsElastic(const CpuPluginConfig& config, const std::string& pool);

/// A container that is to use a pool.
struct Newcomer {
  ContainerKey key;
  Guest guest;
};

/// The pools of `view` when each elastic one has what it needs, as SettlePools says, with
/// `newcomer` (null for none) in its pool. Those of `may_shrink` have needed less for long enough.
/// CPUs stay where they are unless a size changes, and never leave a pool of one size.
/// Cost: O(containers + CPUs), and PickCpus for each pool that changes.
PoolMap SizedPools(const View& view, const Newcomer* newcomer = nullptr,
                   const std::set<std::string>& may_shrink = {});

/// The elastic pools that have more CPUs than they need.
std::set<std::string> PoolsWithSurplus(const View& view);

/// Whether there are CPUs for the minimums of all elastic pools, and one for each that is in use.
bool MinimumsFit(const View& view, const Newcomer* newcomer = nullptr);

/// OK when the machine has the minimums of all elastic pools beside what is reserved and in pools
/// of one size. Errors: kInvalidArgument with both numbers.
Status CheckMinimums(const View& view);

}  // namespace qrm::cpu
