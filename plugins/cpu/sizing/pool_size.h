// How large elastic pools are: pure arithmetic over what their containers
// ask for or use.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/id_set.h"
#include "plugins/cpu/config/advisor_config.h"

namespace qrm::cpu {

/// What one pool should have. Units: CPUs.
struct PoolAsk {
  int min = 0;     ///< whatever its containers ask for
  int wish = 0;    ///< what they ask for, within `min` and `max`
  int firm = 0;    ///< the part that they request
  int max = 0;     ///< the most that it may have
  int sought = 0;  ///< what they ask for, without bounds
  int priority = 0;
  int weight = 1;
  int unit = 1;             ///< it grows by this many CPUs at a time
  bool below_firm = false;  ///< advice may leave it less than its containers request
  bool in_use = false;      ///< it has containers, and is among the last to lose all CPUs
  NumaMask near;            ///< nodes of its containers' devices, near which it should be

  bool operator==(const PoolAsk&) const = default;
};

/// The minimum of a pool under advice.
inline int LeastByAdvice(const PoolAsk& ask) {
  return ask.below_firm || ask.firm < ask.min ? ask.min : ask.firm;
}

/// By pool name, like sizes.
using PoolAsks = std::map<std::string, PoolAsk>;
using PoolSizes = std::map<std::string, int>;

/// What the containers of a pool ask for together.
struct PoolDemand {
  int64_t milli_cpus = 0;
  int containers = 0;
  int64_t milli_limits = 0;  ///< the most that they may use
  NumaMask near;             ///< the nodes of their devices
};

/// The wish of a pool: what its containers ask for, times `ratio_percent`. It is in whole units of
/// `ask`, within its bounds, and at least one CPU while the pool has containers.
int WishOf(const PoolDemand& demand, int ratio_percent, const PoolAsk& ask);

/// `asks`, with no wishes beyond what the containers request.
PoolAsks RequestsOnly(PoolAsks asks);

/// The sizes of the pools of `asks` that share `capacity` CPUs. Each pool gets its minimum. The
/// rest goes to the pools that want more: first for all requests, then for other wishes. The higher
/// priority comes first. Within one priority, pools get whole units in proportion to weight and
/// remaining wish, by largest remainder, ties by name. Less than a unit goes to the next pool. If
/// the minimums exceed the CPUs, as after a loss of CPUs, the lowest priorities lose CPUs first.
/// Each pool goes down to one CPU, then unused pools to none, and at last the others.
/// Cost: O(pools log pools) for each distribution of all units.
PoolSizes SizePools(const PoolAsks& asks, int capacity);

/// What a pool has now, and how it may shrink.
struct PoolHeld {
  int size = 0;
  bool may_shrink = false;  ///< it has needed less for long enough
  int step = 0;             ///< how many CPUs it gives up at a time; 0: all
};

/// As SizePools, but a pool with more than it needs keeps whole units of the surplus until it may
/// shrink, unless other pools need them: the higher priority first, then by name.
PoolSizes SettlePools(const PoolAsks& asks, const std::map<std::string, PoolHeld>& held,
                      int capacity);

/// What containers used between two measurements.
struct Use {
  double cpus = 0;     ///< CPUs that they ran on, on average
  double stalled = 0;  ///< the part of the time in which some thread waited for a CPU: 0 to 1
};

/// What pods used, by UID.
using UseByPod = std::map<std::string, Use>;

/// The CPUs on which containers that use `use` are as busy as `rule` says; all if threads wait.
int CpusFor(const UseRule& rule, const Use& use);

/// CPUs for a pool of `size` CPUs whose containers use `use` and request `requested`. They are to
/// be as busy as `rule` says; if threads still wait, the pool gets more than it has. A pool that
/// needs more than it has gets at least what is requested.
int WishByUse(const UseRule& rule, const Use& use, int size, int requested);

}  // namespace qrm::cpu
