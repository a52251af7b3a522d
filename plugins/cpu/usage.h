// The state of pools and NUMA nodes, for monitoring.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "plugins/cpu/state.h"

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

/// The CPUs of a configured pool, in all its instances together.
struct PoolSize {
  CpuSet configured;  ///< the present ones, if the pool is elastic
  CpuSet now;

  bool operator==(const PoolSize&) const = default;
};

struct CpuUsage {
  std::map<std::string, PoolSize> sizes;   ///< by configured name
  std::map<std::string, PoolUsage> pools;  ///< elastic ones, by configured name
  CpuSet idle;                             ///< online, without an owner
  CpuSet lent;                             ///< of a pool, and also used by others
  /// CPUs by NUMA node that batch work can count on: idle CPUs, and CPUs of lending pools beyond
  /// what their containers request and what the pools keep.
  std::map<int, double> headroom;
  std::vector<std::string> problems;  ///< what the plugin cannot do now: one sentence each
};

/// The use of pools and CPUs in `view`, whatever advisors say.
CpuUsage UsageOf(View view);

/// A plugin that reports its use of CPUs.
class UsageSource {
 public:
  virtual ~UsageSource() = default;
  virtual CpuUsage Usage() const = 0;
};

}  // namespace qrm::cpu
