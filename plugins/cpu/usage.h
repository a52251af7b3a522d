// How pools and NUMA nodes stand, for those who watch a node.
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

/// What an elastic pool's containers ask for, those of all its instances together.
struct PoolUsage {
  enum class Clip : uint8_t {
    kNothing,  ///< it has what they ask for
    kMax,      ///< they ask for more than it may have
    kRoom,     ///< it may have more, and there is not enough
  };
  int wished = 0;  ///< CPUs; those of the pool's `min` among them
  Clip clipped = Clip::kNothing;

  bool operator==(const PoolUsage&) const = default;
};

struct CpuUsage {
  std::map<std::string, PoolUsage> pools;  ///< elastic ones, by configured name
  CpuSet idle;                             ///< online, and nobody's
  CpuSet lent;                             ///< of a pool, and used by others, too
  /// CPUs that batch work can count on, by NUMA node: idle ones, and what pools that lend have
  /// beyond what their containers request and what they keep.
  std::map<int, double> headroom;
};

/// By what was given, and the pools as they are. Errors: those of FitCpuConfig. Cost: that of a
/// restart of the plugin, O(containers).
StatusOr<CpuUsage> UsageOf(const CpuPluginConfig& config, const Machine& machine, PoolMap pools,
                           const sdk::Grants& grants);

}  // namespace qrm::cpu
