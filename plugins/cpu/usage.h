// The state of pools and NUMA nodes, for monitoring.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/state.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// What the containers of an elastic pool ask for, in all its instances together.
struct PoolUsage {
  enum class Clip : uint8_t {
    kNothing,  ///< the pool has what they ask for
    kMax,      ///< they ask for more than the pool may have
    kRoom,     ///< the pool may have more, but there are not enough CPUs
  };
  int wished = 0;  ///< CPUs, including the pool's `min`
  Clip clipped = Clip::kNothing;

  bool operator==(const PoolUsage&) const = default;
};

struct CpuUsage {
  std::map<std::string, PoolUsage> pools;  ///< elastic ones, by configured name
  CpuSet idle;                             ///< online, without an owner
  CpuSet lent;                             ///< of a pool, and also used by others
  /// CPUs by NUMA node that batch work can count on: idle CPUs, and CPUs of lending pools beyond
  /// what their containers request and what the pools keep.
  std::map<int, double> headroom;
};

/// By the grants and the current pools. Errors: those of FitCpuConfig. Cost: that of a restart of
/// the plugin, O(containers).
StatusOr<CpuUsage> UsageOf(const CpuPluginConfig& config, const Machine& machine, PoolMap pools,
                           const sdk::Grants& grants);

}  // namespace qrm::cpu
