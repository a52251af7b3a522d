// Named pools: what makes a set of them valid, resizing them, and their text form on disk.
#pragma once

#include <string>

#include "api/base/status.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/state.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// OK when `pools` are within the machine and apart from each other, from the reserved and from the
/// exclusive CPUs, when none that containers use is empty, and when the default pool is not.
/// Errors: kInvalidArgument naming the pool and the CPUs.
Status CheckPools(const View& view, const PoolMap& pools);

/// The pools with those of `cpus_by_pool` changed; elastic ones give way and take other CPUs.
/// kDefaultPool may be among them when it is what the others leave. Errors: kInvalidArgument for an
/// unknown or elastic pool, and those of CheckPools.
StatusOr<PoolMap> ResizePools(const View& view, const PoolMap& cpus_by_pool);

/// What survives a restart.
struct SavedPools {
  PoolMap pools;
  CpuSet retiring;    ///< that containers of pools may still run on, though no pool has them
  PoolSizes advised;  ///< what pools asked for because somebody advised it
};

/// The pools as text: the size of each beside its configured one.
std::string SavePools(const CpuPluginConfig& config, const SavedPools& saved);

/// The pools of such a text; a pool whose configuration changed since has its configured CPUs, and
/// an elastic one that is new has none.
/// Errors: kDataLoss when `text` cannot be read.
StatusOr<SavedPools> LoadPools(const CpuPluginConfig& config, const std::string& text);

}  // namespace qrm::cpu
