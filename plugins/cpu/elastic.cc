// Sizes elastic pools and chooses their CPUs.
#include "plugins/cpu/elastic.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "plugins/cpu/pick.h"
#include "plugins/cpu/pool_size.h"

namespace qrm::cpu {
namespace {

bool HasElasticPools(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(),
                     [](const auto& pool) { return pool.second.size.has_value(); });
}

/// What elastic pools can share: no container's own, not reserved or isolated, in no pool of one
/// size.
CpuSet SharedCpus(const View& view) {
  CpuSet cpus = ShareableCpus(view) - view.offline;
  for (const auto& [name, fixed] : view.state.pools) {
    if (!IsElastic(view.config, name)) {
      cpus -= fixed;
    }
  }
  return cpus;
}

/// How many of `shared` are for elastic pools: a default pool of what is left keeps one.
int CapacityOf(const View& view, const CpuSet& shared) {
  const bool keeps_one = view.config.default_pool == kDefaultPool &&
                         !IsElastic(view.config, kDefaultPool) && !shared.Empty();
  return shared.Count() - (keeps_one ? 1 : 0);
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

std::map<std::string, PoolDemand> DemandOf(const View& view, const Newcomer* newcomer) {
  std::map<std::string, PoolDemand> demand;
  const auto add = [&](const Guest& guest) {
    PoolDemand& sum = demand[guest.pool];
    sum.milli_cpus += guest.milli_cpus;
    ++sum.containers;
  };
  ForEachGuest(view.state, [&](const ContainerKey& key, const Guest& guest) {
    if (newcomer == nullptr || key != newcomer->key) {
      add(guest);
    }
  });
  if (newcomer != nullptr) {
    add(newcomer->guest);
  }
  return demand;
}

PoolAsks AsksOf(const View& view, const Newcomer* newcomer) {
  const std::map<std::string, PoolDemand> demand = DemandOf(view, newcomer);
  PoolAsks asks;
  for (const auto& [name, pool] : view.config.pools) {
    if (!pool.size.has_value()) {
      continue;
    }
    PoolAsk ask = {.min = pool.size->min,
                   .max = pool.size->max,
                   .priority = pool.priority,
                   .weight = pool.weight,
                   .unit = UnitOf(view.machine, pool.size->round)};
    const auto asked = demand.find(name);
    if (asked != demand.end()) {
      ask.in_use = true;
      // Whoever else needs CPUs, its containers must run somewhere.
      ask.min = std::max(ask.min, std::min(ask.unit, ask.max));
    }
    ask.wish =
        WishOf(asked == demand.end() ? PoolDemand() : asked->second, pool.size->ratio_percent, ask);
    asks[name] = ask;
  }
  return asks;
}

int SumOfMinimums(const View& view, const Newcomer* newcomer) {
  int sum = 0;
  for (const auto& [name, ask] : AsksOf(view, newcomer)) {
    sum += ask.min;
  }
  return sum;
}

/// Higher priorities first, then by name.
std::vector<std::string> InOrder(const PoolAsks& asks) {
  std::vector<std::string> names;
  for (const auto& [name, ask] : asks) {
    names.push_back(name);
  }
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return asks.at(a).priority > asks.at(b).priority;
  });
  return names;
}

}  // namespace

bool IsElastic(const CpuPluginConfig& config, const std::string& pool) {
  const auto found = config.pools.find(pool);
  return found != config.pools.end() && found->second.size.has_value();
}

PoolMap SizedPools(const View& view, const Newcomer* newcomer,
                   const std::set<std::string>& may_shrink) {
  PoolMap pools = view.state.pools;
  if (!HasElasticPools(view.config)) {
    return pools;
  }
  const PoolAsks asks = AsksOf(view, newcomer);
  CpuSet free = SharedCpus(view);
  const int capacity = CapacityOf(view, free);
  std::map<std::string, PoolHeld> held;
  for (const auto& [name, ask] : asks) {
    pools[name] &= free;
    held[name] = {.size = pools[name].Count(),
                  .may_shrink = may_shrink.contains(name),
                  .step = view.config.pools.at(name).size.value_or(ElasticSize()).step};
  }
  const PoolSizes sizes = SettlePools(asks, held, capacity);
  for (const auto& [name, size] : sizes) {
    CpuSet& cpus = pools[name];
    cpus -= DropCpus(view.machine, cpus, cpus.Count() - size);
    free -= cpus;
  }
  for (const std::string& name : InOrder(asks)) {
    CpuSet& cpus = pools[name];
    const CpuSet more = PickCpus(view.machine, cpus, free, sizes.at(name) - cpus.Count());
    cpus |= more;
    free -= more;
  }
  return pools;
}

std::set<std::string> PoolsWithSurplus(const View& view) {
  std::set<std::string> pools;
  if (!HasElasticPools(view.config)) {
    return pools;
  }
  const CpuSet shared = SharedCpus(view);
  for (const auto& [name, size] : SizePools(AsksOf(view, nullptr), CapacityOf(view, shared))) {
    const auto now = view.state.pools.find(name);
    if (now != view.state.pools.end() && (now->second & shared).Count() > size) {
      pools.insert(name);
    }
  }
  return pools;
}

bool MinimumsFit(const View& view, const Newcomer* newcomer) {
  return SumOfMinimums(view, newcomer) <= CapacityOf(view, SharedCpus(view));
}

Status CheckMinimums(const View& view) {
  if (!MinimumsFit(view)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot give pools the {} CPUs of their sizes' minimums: {} are neither reserved "
                  "nor in a pool of one size, besides one of the default pool; lower min or fixed",
                  SumOfMinimums(view, nullptr), CapacityOf(view, SharedCpus(view)));
  }
  return OkStatus();
}

}  // namespace qrm::cpu
