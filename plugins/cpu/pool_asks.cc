// Sums up what the containers of elastic pools ask for.
#include "plugins/cpu/pool_asks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/container_turns.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/sizing/advice.h"

namespace qrm::cpu {
namespace {

/// By pool name; the state keeps the names alive.
using Demands = std::unordered_map<std::string_view, PoolDemand>;

/// What containers of one pod ask for of a pool.
struct PodAsk {
  AmountInTurn<int64_t> milli_cpus;
  AmountInTurn<int64_t> milli_limits;

  void Add(const Guest& guest) {
    milli_cpus.Add(guest.type, guest.milli_cpus);
    milli_limits.Add(guest.type, guest.milli_limit);
  }
};

void Add(const PodAsk& ask, int sign, PoolDemand& sum) {
  sum.milli_cpus += sign * ask.milli_cpus.AtOnce();
  sum.milli_limits += sign * ask.milli_limits.AtOnce();
}

/// What the containers of the pod that `counts` accepts ask `pool` for. Cost: O(containers of the
/// pod).
template <typename Counts>
PodAsk AskOfPod(const CpuState& state, const std::string& pod_uid, std::string_view pool,
                const Counts& counts) {
  PodAsk ask;
  const auto add = [&](const ContainerKey& key, const Guest& guest) {
    if (guest.pool == pool && counts(key, guest)) {
      ask.Add(guest);
    }
  };
  const ContainerKey first{pod_uid, ""};
  for (auto guest = state.shared.lower_bound(first);
       guest != state.shared.end() && guest->first.pod_uid == pod_uid; ++guest) {
    add(guest->first, guest->second);
  }
  for (auto owner = state.exclusive.lower_bound(first);
       owner != state.exclusive.end() && owner->first.pod_uid == pod_uid; ++owner) {
    if (owner->second.Shares()) {
      add(owner->first, owner->second.beside);
    }
  }
  return ask;
}

/// Of all containers, or all except `without`. The devices of `without` still count: it comes back
/// at once with the same devices. Few pods have init containers: only these pods are summed up as a
/// whole.
Demands DemandsOf(const View& view, const ContainerKey* without = nullptr) {
  const auto counts = [without](const ContainerKey& key) {
    return without == nullptr || key != *without;
  };
  Demands demands;
  std::set<std::pair<std::string, std::string_view>> with_inits;  // pods, and their pools
  ForEachGuest(view.state, [&](const ContainerKey& key, const Guest& guest) {
    PoolDemand& sum = demands[guest.pool];
    if (!guest.near.Empty()) {
      sum.near |= guest.near;
    }
    if (!counts(key)) {
      return;
    }
    ++sum.containers;
    if (guest.type == ContainerType::kInit) {
      with_inits.emplace(key.pod_uid.str(), guest.pool);
    } else {
      PodAsk ask;
      ask.Add(guest);
      Add(ask, 1, sum);
    }
  });
  for (const auto& [pod_uid, pool] : with_inits) {
    PoolDemand& sum = demands[pool];
    Add(AskOfPod(view.state, pod_uid, pool,
                 [&](const ContainerKey& key, const Guest& guest) {
                   return counts(key) && guest.type != ContainerType::kInit;
                 }),
        -1, sum);
    Add(AskOfPod(view.state, pod_uid, pool,
                 [&](const ContainerKey& key, const Guest& /*guest*/) { return counts(key); }),
        1, sum);
  }
  return demands;
}

/// All existing pools, and those that the demand creates.
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
    // The pool's containers must run somewhere, even if others need CPUs.
    ask.min = std::max(ask.min, std::min(ask.unit, ask.max));
  } else if (pool.instances.has_value()) {
    ask.min = 0;
  }
  demand.milli_cpus *= owned;
  ask.firm = WishOf(demand, size.ratio_percent, ask);
  if (ask.in_use && !ask.below_firm &&
      pool.instances.value_or(InstanceRule()).when_full != InstanceRule::WhenFull::kOverbook) {
    ask.min = ask.firm;  // no other pool makes it overbook
  }
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

/// Sets which instances of the pool `name` exist without containers: as many as those with
/// containers lack of instances.min, empty ones of groups among them.
void SetSpares(const View& view, const std::string& name, const PoolConfig& pool, PoolAsks& asks) {
  int missing = pool.instances.value_or(InstanceRule()).min;
  std::vector<std::string> empty;
  for (const auto& [instance, ask] : asks) {
    if (ConfiguredName(instance) == name && instance != name) {
      missing -= ask.in_use ? 1 : 0;
      if (!ask.in_use) {
        empty.push_back(instance);
      }
    }
  }
  for (int number = 1; static_cast<int>(empty.size()) < missing; ++number) {
    if (const std::string spare = SpareInstance(name, number); !asks.contains(spare)) {
      empty.push_back(spare);
    }
  }
  for (const std::string& instance : empty) {
    if (missing-- > 0) {
      asks[instance] = AskOf(view.machine, pool, {.containers = 1});
      asks[instance].in_use = false;
    } else if (IsSpare(instance)) {
      asks.erase(instance);
    } else {
      asks[instance] = AskOf(view.machine, pool, {});
    }
  }
}

void SetSpares(const View& view, PoolAsks& asks) {
  std::erase_if(asks, [&](const auto& ask) {
    return IsSpare(ask.first) && FindPool(view.config, ask.first)->instances->min == 0;
  });
  for (const auto& [name, pool] : view.config.pools) {
    if (pool.instances.value_or(InstanceRule()).min > 0) {
      SetSpares(view, name, pool, asks);
    }
  }
}

PoolAsks AsksBy(const View& view, const Demands& demands) {
  PoolAsks asks;
  for (const std::string& name : ElasticPools(view, demands)) {
    const auto demand = demands.find(name);
    asks[name] = AskOf(view.machine, *FindPool(view.config, name),
                       demand == demands.end() ? PoolDemand() : demand->second);
  }
  SetSpares(view, asks);
  return asks;
}

/// What the pool of `candidate` is asked for, of `demands` without it, and by it.
const PoolDemand& AddCandidate(const View& view, const Candidate& candidate, Demands& demands) {
  const std::string& pool = candidate.guest.pool;
  PoolDemand& sum = demands[pool];
  PodAsk ask = AskOfPod(
      view.state, candidate.key.pod_uid, pool,
      [&](const ContainerKey& key, const Guest& /*guest*/) { return key != candidate.key; });
  Add(ask, -1, sum);
  ask.Add(candidate.guest);
  Add(ask, 1, sum);
  ++sum.containers;
  sum.near |= candidate.guest.near;
  return sum;
}

PoolAsks Advised(const View& view, PoolAsks asks) {
  return view.advised == nullptr ? asks : WithAdvice(std::move(asks), *view.advised);
}

}  // namespace

PoolAsks AsksOf(const View& view) {
  return Advised(view, AsksBy(view, DemandsOf(view)));
}

AsksAround AsksAroundOf(const View& view, const Candidate& candidate) {
  Demands demands = DemandsOf(view, &candidate.key);
  AsksAround asks{.before = AsksBy(view, demands), .after = {}};
  asks.after = asks.before;
  const std::string& pool = candidate.guest.pool;
  asks.after[pool] =
      AskOf(view.machine, *FindPool(view.config, pool), AddCandidate(view, candidate, demands));
  SetSpares(view, asks.after);
  return {.before = Advised(view, std::move(asks.before)),
          .after = Advised(view, std::move(asks.after))};
}

int64_t MilliCpusWith(const View& view, const Candidate& candidate) {
  Demands demands = DemandsOf(view, &candidate.key);
  return AddCandidate(view, candidate, demands).milli_cpus;
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
                         !IsElastic(view.config, kDefaultPool) && !elastic.Empty() &&
                         (ReservedOfDefaultPool(view) - view.offline).Empty();
  return elastic.Count() - (keeps_one ? 1 : 0);
}

}  // namespace qrm::cpu
