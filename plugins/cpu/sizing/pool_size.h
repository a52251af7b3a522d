// How large elastic pools are: pure arithmetic over what their containers ask for.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/id_set.h"

namespace qrm::cpu {

/// What one pool is to have. Units: CPUs.
struct PoolAsk {
  int min = 0;     ///< it has these whatever its containers ask for
  int wish = 0;    ///< what they ask for, from `min` to the most that it may have
  int firm = 0;    ///< what they request of that
  int max = 0;     ///< the most that it may have
  int sought = 0;  ///< what they ask for, whatever it may have
  int priority = 0;
  int weight = 1;
  int unit = 1;             ///< it grows by so many CPUs at a time
  bool below_firm = false;  ///< advice may leave it less than what they request
  bool in_use = false;      ///< it has containers, and is the last to have none
  NumaMask near;            ///< where devices of its containers are that it is to be near to

  bool operator==(const PoolAsk&) const = default;
};

/// The least that advice may leave a pool.
inline int LeastByAdvice(const PoolAsk& ask) {
  return ask.below_firm || ask.firm < ask.min ? ask.min : ask.firm;
}

/// By the pools' names, as are sizes.
using PoolAsks = std::map<std::string, PoolAsk>;
using PoolSizes = std::map<std::string, int>;

/// What containers of a pool ask for together.
struct PoolDemand {
  int64_t milli_cpus = 0;
  int containers = 0;
  int64_t milli_limits = 0;  ///< the most that they may use
  NumaMask near;             ///< where their devices are
};

/// The wish of a pool: what is asked for, times `ratio_percent`, in whole units of `ask`, within
/// its bounds; at least a CPU while it has containers.
int WishOf(const PoolDemand& demand, int ratio_percent, const PoolAsk& ask);

/// `asks` of pools that wish for no more than what their containers request.
PoolAsks RequestsOnly(PoolAsks asks);

/// The sizes of the pools of `asks` that share `capacity` CPUs. Each gets its minimum. The rest
/// goes to those that wish for more, what is requested of all before anything else: the higher
/// priority first; within one priority in proportion to weight and to what is still wished for, by
/// largest remainder, in whole units, ties by name; what does not fill a unit goes to the next.
/// Where the minimums are too much, as after a loss of CPUs, the lowest priorities go without: each
/// down to one CPU, then those not in use to none, and at last the others. Cost: O(pools log pools)
/// for each time that all units are handed out.
PoolSizes SizePools(const PoolAsks& asks, int capacity);

/// What a pool has now, and how far it may be from what it needs.
struct PoolHeld {
  int size = 0;
  bool may_shrink = false;  ///< it has needed less for long enough
  int step = 0;             ///< then it gives up so many at a time; 0: all
};

/// As SizePools, but that a pool which has more than it needs keeps whole units of it until it may
/// shrink, as far as nobody else needs it: the higher priority first, then by name.
PoolSizes SettlePools(const PoolAsks& asks, const std::map<std::string, PoolHeld>& held,
                      int capacity);

}  // namespace qrm::cpu
