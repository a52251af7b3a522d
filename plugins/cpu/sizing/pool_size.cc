// Computes the sizes of elastic pools, only with whole numbers.
#include "plugins/cpu/sizing/pool_size.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "api/id_set.h"

namespace qrm::cpu {
namespace {

/// One pool while CPUs are handed out.
struct Share {
  const std::string* name;
  const PoolAsk* ask;
  int size;
  int64_t remainder = 0;  ///< of its part, in fractions of the whole round

  int want() const { return ask->wish - size; }
  /// Whether the pool wants one more unit.
  bool TakesUnit() const { return want() >= ask->unit; }
};

using Shares = std::vector<Share>;

/// Higher priorities first, then by name.
Shares InOrder(const PoolAsks& asks) {
  Shares shares;
  for (const auto& [name, ask] : asks) {
    shares.push_back({.name = &name, .ask = &ask, .size = ask.min});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.ask->priority > b.ask->priority;
  });
  return shares;
}

/// Takes `missing` CPUs, starting from the last of `shares`, and leaves each what `level` says.
/// Returns how many are still missing.
template <typename Level>
int TakeDownTo(Level level, int missing, Shares& shares) {
  for (auto share = shares.rbegin(); share != shares.rend() && missing > 0; ++share) {
    const int taken = std::clamp(share->size - level(*share), 0, missing);
    share->size -= taken;
    missing -= taken;
  }
  return missing;
}

/// Takes the missing CPUs from the minimums, starting from the last of `shares`.
void TakeFromMinimums(int missing, Shares& shares) {
  missing = TakeDownTo([](const Share&) { return 1; }, missing, shares);
  missing =
      TakeDownTo([](const Share& share) { return share.ask->in_use ? 1 : 0; }, missing, shares);
  TakeDownTo([](const Share&) { return 0; }, missing, shares);
}

/// Gives each of `group` the whole units of its part of `rest`, and notes the remainder of its
/// part.
int GiveParts(const std::vector<Share*>& group, int rest) {
  int64_t all = 0;
  for (const Share* share : group) {
    all += int64_t{share->ask->weight} * share->want();
  }
  int given = 0;
  for (Share* share : group) {
    const int64_t part = int64_t{rest} * share->ask->weight * share->want();
    const int unit = share->ask->unit;
    const auto units =
        static_cast<int>(std::min<int64_t>(part / (all * unit), share->want() / unit));
    share->remainder = part - int64_t{units} * unit * all;
    share->size += units * unit;
    given += units * unit;
  }
  return given;
}

/// Gives a unit each to the shares with the largest remainders, as far as `rest` suffices.
int GiveRemainders(std::vector<Share*> group, int rest) {
  std::stable_sort(group.begin(), group.end(),
                   [](const Share* a, const Share* b) { return a->remainder > b->remainder; });
  int given = 0;
  for (Share* share : group) {
    if (share->TakesUnit() && share->ask->unit <= rest - given) {
      share->size += share->ask->unit;
      given += share->ask->unit;
    }
  }
  return given;
}

/// Distributes `rest` within one priority. Returns the CPUs that are left.
int HandOut(Shares::iterator first, Shares::iterator last, int rest) {
  while (rest > 0) {
    std::vector<Share*> group;
    for (auto share = first; share != last; ++share) {
      if (share->TakesUnit() && share->ask->unit <= rest) {
        group.push_back(&*share);
      }
    }
    if (group.empty()) {
      break;
    }
    rest -= GiveParts(group, rest);
    rest -= GiveRemainders(group, rest);
  }
  return rest;
}

/// What happens to the remainder of a unit, which pools of whole cores have if threads are offline.
enum class Rest { kGivenUp, kKept };

/// How much of `surplus` a pool keeps, in whole units; at most `most`.
int KeptOf(int surplus, int unit, Rest rest, int most) {
  const int units = (std::max(surplus, 0) + (rest == Rest::kKept ? unit - 1 : 0)) / unit;
  return std::min(units, std::max(most, 0) / unit) * unit;
}

}  // namespace

int WishOf(const PoolDemand& demand, int ratio_percent, const PoolAsk& ask) {
  constexpr int64_t kMilliPercent = 100000;
  const int64_t asked = (demand.milli_cpus * ratio_percent + kMilliPercent - 1) / kMilliPercent;
  const int64_t cpus = std::max<int64_t>(asked, demand.containers > 0 ? 1 : 0);
  const int64_t units = (cpus + ask.unit - 1) / ask.unit;
  return static_cast<int>(std::clamp<int64_t>(units * ask.unit, ask.min, ask.max));
}

PoolAsks RequestsOnly(PoolAsks asks) {
  for (auto& [name, ask] : asks) {
    ask.wish = std::max(ask.min, std::min(ask.wish, ask.firm));
  }
  return asks;
}

namespace {

/// As SizePools, without regard to requests.
PoolSizes SizeByWish(const PoolAsks& asks, int capacity) {
  Shares shares = InOrder(asks);
  int rest = std::accumulate(shares.begin(), shares.end(), capacity,
                             [](int left, const Share& share) { return left - share.size; });
  if (rest < 0) {
    TakeFromMinimums(-rest, shares);
    rest = 0;
  }
  for (auto first = shares.begin(); first != shares.end();) {
    const auto last = std::find_if(first, shares.end(), [&](const Share& share) {
      return share.ask->priority != first->ask->priority;
    });
    rest = HandOut(first, last, rest);
    first = last;
  }
  PoolSizes sizes;
  for (const Share& share : shares) {
    sizes[*share.name] = share.size;
  }
  return sizes;
}

}  // namespace

PoolSizes SizePools(const PoolAsks& asks, int capacity) {
  const PoolAsks requests = RequestsOnly(asks);
  if (requests == asks) {
    return SizeByWish(asks, capacity);
  }
  PoolAsks rest = asks;
  for (const auto& [name, size] : SizeByWish(requests, capacity)) {
    PoolAsk& ask = rest.at(name);
    ask.min = std::max(ask.min, size);
  }
  return SizeByWish(rest, capacity);
}

PoolSizes SettlePools(const PoolAsks& asks, const std::map<std::string, PoolHeld>& held,
                      int capacity) {
  PoolSizes sizes = SizePools(asks, capacity);
  int spare = std::accumulate(sizes.begin(), sizes.end(), capacity,
                              [](int left, const auto& size) { return left - size.second; });
  for (const Share& share : InOrder(asks)) {
    const auto now = held.find(*share.name);
    if (now == held.end()) {
      continue;
    }
    int& size = sizes.at(*share.name);
    const int surplus = std::min(now->second.size, share.ask->max) - size;
    const int step = now->second.step == 0 ? surplus : now->second.step;
    const int kept = KeptOf(now->second.may_shrink ? surplus - step : surplus, share.ask->unit,
                            now->second.may_shrink ? Rest::kGivenUp : Rest::kKept,
                            std::min(spare, share.ask->max - size));
    size += kept;
    spare -= kept;
  }
  return sizes;
}

namespace {

int BusyCpus(const UseRule& rule, const Use& use) {
  const double busy = std::ceil(use.cpus * 100 / rule.target_percent);
  return static_cast<int>(std::clamp(busy, 0.0, double{CpuSet::kMaxIds}));
}

bool Waits(const UseRule& rule, const Use& use) {
  return use.stalled * 100 >= rule.pressure_percent;
}

}  // namespace

int CpusFor(const UseRule& rule, const Use& use) {
  return Waits(rule, use) ? CpuSet::kMaxIds : BusyCpus(rule, use);
}

int WishByUse(const UseRule& rule, const Use& use, int size, int requested) {
  int wish = BusyCpus(rule, use);
  if (Waits(rule, use)) {
    wish = std::max(wish, size + std::max(size / 10, 1));
  }
  return wish > size ? std::max(wish, requested) : wish;
}

}  // namespace qrm::cpu
