// Which CPUs pools use beside their own: idle ones, and those that other pools lend them.
#pragma once

#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// The CPUs that nobody owns and that are online; none where the default pool has all that is left.
CpuSet IdleCpus(const View& view);

/// What each pool borrows while the pools are `pools`; a pool that borrows nothing is not there.
/// Idle are the CPUs that are online and neither reserved, nor a container's own, nor in a pool. A
/// lender lends what it would give up first, all its borrowers the same, and keeps for itself what
/// its rule says. What is borrowed is not lent on. Borrowing changes neither who owns a CPU nor the
/// size of a pool: a pool or a container that needs an idle CPU takes it.
/// Cost: O(pools), and for each lender DropCpus.
PoolMap Borrow(const View& view, const PoolMap& pools);

/// The CPUs that containers of `pool` run on while the pools are `pools`: its own, and what it
/// borrows, or one thread of each core of them where its rule says so.
CpuSet UsedCpus(const View& view, const PoolMap& pools, const std::string& pool);
/// The same for the pools of `view`.
CpuSet UsedCpus(const View& view, const std::string& pool);

}  // namespace qrm::cpu
