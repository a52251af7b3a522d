// Named pools: checks, resizing, borrowed CPUs, and their text form on disk.
#pragma once

#include <string>

#include "api/base/status.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/state.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// OK when `pools` are within the machine, and overlap neither each other nor reserved or exclusive
/// CPUs. Pools with containers and the default pool must have CPUs. Errors: kInvalidArgument with
/// the pool and the CPUs.
Status CheckPools(const View& view, const PoolMap& pools);

/// The pools with the changes of `cpus_by_pool`; elastic pools make way and take other CPUs.
/// kDefaultPool is allowed in it if it has the CPUs that the other pools leave. Errors:
/// kInvalidArgument for an unknown or elastic pool, and those of CheckPools.
StatusOr<PoolMap> ResizePools(const View& view, const PoolMap& cpus_by_pool);

/// The part of the pools' state that survives a restart.
struct SavedPools {
  PoolMap pools;
  CpuSet retiring;    ///< that containers of pools may still run on, though no pool has them
  PoolSizes advised;  ///< what pools asked for by advice
};

/// The pools as text: the CPUs of each pool, and its configuration.
std::string SavePools(const CpuPluginConfig& config, const SavedPools& saved);

/// Reads such a text. A pool whose configuration changed has its configured CPUs, and a new elastic
/// pool has none.
/// Errors: kDataLoss when `text` cannot be read.
StatusOr<SavedPools> LoadPools(const CpuPluginConfig& config, const std::string& text);

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
