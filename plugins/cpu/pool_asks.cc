// Sums up what containers of elastic pools ask for.
#include "plugins/cpu/pool_asks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/sizing/advice.h"

namespace qrm::cpu {
namespace {

/// By pool, whose names the state keeps.
using Demands = std::unordered_map<std::string_view, PoolDemand>;

void Add(const Guest& guest, int sign, Demands& demands) {
  PoolDemand& sum = demands[guest.pool];
  sum.milli_cpus += sign * guest.milli_cpus;
  sum.milli_limits += sign * guest.milli_limit;
  sum.containers += sign;
  if (!guest.near.Empty()) {
    sum.near |= guest.near;  // one that goes comes again at once, with the same devices
  }
}

Demands DemandsOf(const View& view) {
  Demands demands;
  ForEachGuest(view.state,
               [&](const ContainerKey& /*key*/, const Guest& guest) { Add(guest, 1, demands); });
  return demands;
}

/// What the container of `key` asks for by `state`, if anything.
const Guest* FindGuest(const CpuState& state, const ContainerKey& key) {
  if (const auto shared = state.shared.find(key); shared != state.shared.end()) {
    return &shared->second;
  }
  const auto owner = state.exclusive.find(key);
  return owner != state.exclusive.end() && owner->second.Shares() ? &owner->second.beside : nullptr;
}

/// All that are there, and those that demand makes.
std::set<std::string> ElasticPools(const View& view, const Demands& demands) {
  std::set<std::string> names;
  const auto add = [&](std::string_view name) {
    if (IsElastic(view.config, name)) {
      names.insert(std::string(name));
    }
  };
  for (const auto& [name, pool] : view.config.pools) {
    add(name);
  }
  for (const auto& [name, cpus] : view.state.pools) {
    add(name);
  }
  for (const auto& [name, demand] : demands) {
    if (demand.containers > 0) {
      add(name);
    }
  }
  return names;
}

/// CPUs of the largest core or L3 cache, by which a pool grows.
int UnitOf(const Machine& machine, ElasticSize::Round round) {
  if (round == ElasticSize::Round::kCpu) {
    return 1;
  }
  const auto& groups = round == ElasticSize::Round::kCore ? machine.cores() : machine.l3s();
  int largest = 1;
  for (const CpuGroup& group : groups) {
    largest = std::max(largest, group.cpus.Count());
  }
  return largest;
}

int RoundUp(int count, int unit) {
  return (count + unit - 1) / unit * unit;
}

PoolAsk AskOf(const Machine& machine, const PoolConfig& pool, PoolDemand demand) {
  const ElasticSize size = pool.size.value_or(ElasticSize());
  const int threads = pool.place.OwnsWholeCores()
                          ? ThreadsPerCore(machine, CpusOfKind(machine, pool.place.core))
                          : 1;
  const int owned = pool.place.threads == PlaceRule::Threads::kOnePerCore ? threads : 1;
  PoolAsk ask = {.min = RoundUp(size.min * owned, threads),
                 .max = std::max(size.max * owned / threads, 1) * threads,
                 .priority = pool.priority,
                 .weight = pool.weight,
                 .unit = std::max(UnitOf(machine, size.round), threads),
                 .below_firm = size.below_requests,
                 .in_use = demand.containers > 0};
  ask.max = std::max(ask.max, ask.min);
  if (ask.in_use) {
    // Whoever else needs CPUs, its containers must run somewhere.
    ask.min = std::max(ask.min, std::min(ask.unit, ask.max));
  } else if (pool.instances.has_value()) {
    ask.min = 0;
  }
  demand.milli_cpus *= owned;
  ask.firm = WishOf(demand, size.ratio_percent, ask);
  if (size.per == ElasticSize::Per::kLimit) {
    demand.milli_cpus = demand.milli_limits * owned;
  }
  ask.wish = WishOf(demand, size.ratio_percent, ask);
  ask.near = std::move(demand.near);
  PoolAsk boundless = ask;
  boundless.max = CpuSet::kMaxIds;
  ask.sought = WishOf(demand, size.ratio_percent, boundless);
  return ask;
}

PoolAsks AsksBy(const View& view, const Demands& demands) {
  PoolAsks asks;
  for (const std::string& name : ElasticPools(view, demands)) {
    const auto demand = demands.find(name);
    asks[name] = AskOf(view.machine, *FindPool(view.config, name),
                       demand == demands.end() ? PoolDemand() : demand->second);
  }
  return asks;
}

PoolAsks Advised(const View& view, PoolAsks asks) {
  return view.advised == nullptr ? asks : WithAdvice(std::move(asks), *view.advised);
}

}  // namespace

PoolAsks AsksOf(const View& view) {
  return Advised(view, AsksBy(view, DemandsOf(view)));
}

AsksAround AsksAroundOf(const View& view, const Newcomer& newcomer) {
  Demands demands = DemandsOf(view);
  if (const Guest* const earlier = FindGuest(view.state, newcomer.key); earlier != nullptr) {
    Add(*earlier, -1, demands);
  }
  AsksAround asks{.before = AsksBy(view, demands), .after = {}};
  asks.after = asks.before;
  const std::string& pool = newcomer.guest.pool;
  Add(newcomer.guest, 1, demands);
  asks.after[pool] = AskOf(view.machine, *FindPool(view.config, pool), demands[pool]);
  return {.before = Advised(view, std::move(asks.before)),
          .after = Advised(view, std::move(asks.after))};
}

int LeastInUse(const Machine& machine, const PoolConfig& pool) {
  return AskOf(machine, pool, {.containers = 1}).min;
}

CpuSet ElasticCpus(const View& view) {
  CpuSet cpus = ShareableCpus(view) - view.offline;
  for (const auto& [name, fixed] : view.state.pools) {
    if (!IsElastic(view.config, name)) {
      cpus -= fixed;
    }
  }
  return cpus;
}

int CapacityOf(const View& view, const CpuSet& elastic) {
  const bool keeps_one = view.config.default_pool == kDefaultPool &&
                         !IsElastic(view.config, kDefaultPool) && !elastic.Empty();
  return elastic.Count() - (keeps_one ? 1 : 0);
}

}  // namespace qrm::cpu
