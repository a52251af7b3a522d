// Which further CPUs pools use: idle CPUs, and CPUs that other pools lend them.
#pragma once

#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// The online CPUs without an owner; none if the default pool has all CPUs that are left.
CpuSet IdleCpus(const View& view);

/// What each pool borrows while the pools are `pools`; without pools that borrow nothing. Idle CPUs
/// are online and neither reserved, nor exclusive, nor in a pool. A lender lends the CPUs that it
/// would give up first, the same to all its borrowers, and keeps what its rule says. Borrowed CPUs
/// are not lent on. Borrowing changes neither the owner of a CPU nor the size of a pool: a pool or
/// container that needs an idle CPU takes it.
/// Cost: O(pools), and for each lender DropCpus.
PoolMap Borrow(const View& view, const PoolMap& pools);

/// The CPUs that containers of `pool` run on while the pools are `pools`: those of the pool and
/// borrowed CPUs. If its rule says so, one thread of each of these cores.
CpuSet UsedCpus(const View& view, const PoolMap& pools, const std::string& pool);
/// The same for the pools of `view`.
CpuSet UsedCpus(const View& view, const std::string& pool);

}  // namespace qrm::cpu
