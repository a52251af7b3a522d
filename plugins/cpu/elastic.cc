// Sizes elastic pools and chooses their CPUs.
#include "plugins/cpu/elastic.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/plan_memo.h"
#include "plugins/cpu/pool_asks.h"
#include "plugins/cpu/regions.h"
#include "plugins/cpu/sizing/pool_size.h"

namespace qrm::cpu {
namespace {

int SumOfMinimums(const PoolAsks& asks) {
  int sum = 0;
  for (const auto& [name, ask] : asks) {
    sum += ask.min;
  }
  return sum;
}

/// Whether a pool of `rule` avoids sharing with `other`.
bool Avoids(const PlaceRule& rule, std::string_view other) {
  return std::find(rule.avoid.begin(), rule.avoid.end(), ConfiguredName(other)) != rule.avoid.end();
}

bool SomeAvoid(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(), [](const auto& pool) {
    return !pool.second.place.avoid.empty() || pool.second.place.keeps_near;
  });
}

CpuSet SharingWith(const Machine& machine, PlaceRule::Share share, const CpuSet& cpus) {
  if (share == PlaceRule::Share::kCore) {
    return machine.CoresOf(cpus);
  }
  CpuSet shared;
  for (const CpuGroup& l3 : machine.l3s()) {
    shared |= l3.cpus.Intersects(cpus) ? l3.cpus : CpuSet();
  }
  return shared;
}

/// Elastic pools while their CPUs are chosen.
class Chooser {
 public:
  /// All arguments outlive the chooser.
  Chooser(const View& view, const PoolAsks& asks, const Regions& regions, CpuSet free)
      : view_(view),
        asks_(asks),
        regions_(regions),
        free_(std::move(free)),
        some_avoid_(SomeAvoid(view.config)) {
    pools_ = view.state.pools;
    GiveSpares();
    for (const auto& [name, ask] : asks) {
      CpuSet& cpus = pools_[name];
      cpus &= regions.at(name);
      if (FindPool(view.config, name)->place.OwnsWholeCores()) {
        // Parts of cores are given up for whole ones.
        cpus = view.machine.WholeCores(cpus, view.offline);
      }
    }
  }

  std::map<std::string, PoolHeld> Held(const std::set<std::string>& may_shrink) const {
    std::map<std::string, PoolHeld> held;
    for (const auto& [name, ask] : asks_) {
      const PoolConfig& config = *FindPool(view_.config, name);
      held[name] = {.size = pools_.at(name).Count(),
                    .may_shrink = may_shrink.contains(name),
                    .step = config.size.value_or(ElasticSize()).step};
    }
    return held;
  }

  PoolMap Choose(const PoolSizes& sizes) {
    for (const auto& [name, size] : sizes) {
      CpuSet& cpus = pools_.at(name);
      if (cpus.Count() > size) {
        const PlaceRule rule = RuleOf(view_, name, asks_.at(name));
        cpus -= DropPlaced(Around(name, rule), cpus, cpus.Count() - size);
        if (rule.OwnsWholeCores()) {
          cpus = view_.machine.WholeCores(cpus, view_.offline);
        }
      }
      free_ -= cpus;
    }
    const std::vector<std::string> order = InOrder();
    for (std::size_t i = 0; i < order.size(); ++i) {
      Grow(order, i, sizes.at(order[i]));
    }
    std::erase_if(pools_, [&](const auto& pool) {
      const auto ask = asks_.find(pool.first);
      return ConfiguredName(pool.first) != pool.first && pool.second.Empty() &&
             (ask == asks_.end() || !ask->second.in_use);
    });
    return std::move(pools_);
  }

 private:
  /// A new instance takes over the CPUs of one that existed without containers.
  void GiveSpares() {
    for (const auto& [spare, cpus] : view_.state.pools) {
      if (!IsSpare(spare) || asks_.contains(spare)) {
        continue;
      }
      pools_.erase(spare);
      const auto heir = std::find_if(asks_.begin(), asks_.end(), [&](const auto& ask) {
        return ask.second.in_use && ConfiguredName(ask.first) == ConfiguredName(spare) &&
               pools_[ask.first].Empty();
      });
      if (heir != asks_.end()) {
        pools_[heir->first] = cpus;
      }
    }
  }

  /// `rule` is the rule of the pool `name`, and outlives the result.
  Surroundings Around(const std::string& name, const PlaceRule& rule) const {
    return {view_.machine, rule, view_.offline, some_avoid_ ? AvoidedBy(name, rule) : CpuSet()};
  }

  CpuSet AvoidedBy(const std::string& name, const PlaceRule& rule) const {
    CpuSet avoided;
    for (const auto& [other, config] : view_.config.pools) {
      if (config.place.keeps_near && other != ConfiguredName(name)) {
        avoided |= view_.machine.CpusOf(config.place.near_nodes);
      }
    }
    for (const auto& [other, cpus] : pools_) {
      const PoolConfig* const theirs = FindPool(view_.config, other);
      if (other == name || theirs == nullptr || cpus.Empty()) {
        continue;
      }
      if (Avoids(rule, other)) {
        avoided |= SharingWith(view_.machine, rule.avoided_share, cpus);
      }
      if (Avoids(theirs->place, name)) {
        avoided |= SharingWith(view_.machine, theirs->place.avoided_share, cpus);
      }
    }
    return avoided;
  }

  /// Smaller regions first, then higher priorities, then by name.
  std::vector<std::string> InOrder() const {
    using Rank = std::tuple<int, int, std::string_view>;
    std::vector<Rank> ranks;
    ranks.reserve(asks_.size());
    for (const auto& [name, ask] : asks_) {
      ranks.emplace_back(regions_.at(name).Count(), -ask.priority, name);
    }
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::string> names;
    names.reserve(ranks.size());
    for (const Rank& rank : ranks) {
      names.emplace_back(std::get<std::string_view>(rank));
    }
    return names;
  }

  /// Grows the pool order[i] to `size`: with free CPUs, else with CPUs of later pools that may take
  /// others.
  void Grow(const std::vector<std::string>& order, std::size_t i, int size) {
    const std::string& name = order[i];
    const CpuSet& region = regions_.at(name);
    CpuSet& cpus = pools_.at(name);
    if (cpus.Count() >= size) {
      return;
    }
    const PlaceRule rule = RuleOf(view_, name, asks_.at(name));
    const Surroundings around = Around(name, rule);
    const CpuSet more = PickPlaced(around, cpus, free_ & region, size - cpus.Count());
    cpus |= more;
    free_ -= more;
    if (cpus.Count() == size) {
      return;
    }
    const CpuSet taken =
        PickPlaced(around, cpus, (free_ | OfWider(order, i)) & region, size - cpus.Count());
    for (std::size_t later = i + 1; later < order.size(); ++later) {
      GiveWay(order[later], taken);
    }
    cpus |= taken;
    free_ -= taken;
    if (rule.OwnsWholeCores()) {
      CompleteCores(name, size);
    }
    if (cpus.Empty() && size > 0 && asks_.at(name).in_use) {
      // A part of a core is better than nothing to run on.
      cpus = PickCpus(view_.machine, {}, free_ & region, 1);
      free_ -= cpus;
    }
  }

  /// Grows the pool `name`, which wants whole cores, to `size` with cores that it shares with other
  /// pools. These take other CPUs, or lose CPUs that they only keep for a while.
  void CompleteCores(const std::string& name, int size) {
    CpuSet& cpus = pools_.at(name);
    while (cpus.Count() < size) {
      const CpuSet core = CoreToComplete(name, size - cpus.Count());
      if (core.Empty()) {
        return;
      }
      const CpuSet lost = core - free_;
      free_ -= core;
      cpus |= core;
      for (const auto& [other, ask] : asks_) {
        CpuSet& theirs = pools_.at(other);
        if (const int part = (theirs & lost).Count(); other != name && part > 0) {
          theirs -= lost;
          const PlaceRule rule = RuleOf(view_, other, ask);
          const CpuSet instead =
              PickPlaced(Around(other, rule), theirs, free_ & regions_.at(other), part);
          theirs |= instead;
          free_ -= instead;
        }
      }
    }
  }

  /// The core of at most `most` CPUs, none of them the pool's, of which other pools lose fewest
  /// CPUs; empty if they can spare no core.
  CpuSet CoreToComplete(const std::string& name, int most) const {
    const CpuSet& region = regions_.at(name);
    CpuSet best;
    int fewest = CpuSet::kMaxIds;
    for (const CpuGroup& group : view_.machine.cores()) {
      const CpuSet core = group.cpus - view_.offline;
      const int lost = (core - free_).Count();
      if (!core.Empty() && core.Count() <= most && lost < fewest && core.IsSubsetOf(region) &&
          CanBeGiven(core)) {
        best = core;
        fewest = lost;
      }
    }
    return best;
  }

  /// Whether each CPU of `core` is free, or belongs to a pool that does not need whole cores and
  /// can replace the CPUs that it needs.
  bool CanBeGiven(const CpuSet& core) const {
    CpuSet given = free_;
    const int lost = (core - free_).Count();
    for (const auto& [other, ask] : asks_) {
      const CpuSet& theirs = pools_.at(other);
      const int part = (theirs & core).Count();
      const bool spare = theirs.Count() - part >= ask.wish;
      const bool instead = ((free_ - core) & regions_.at(other)).Count() >= lost;
      if (part > 0 && (spare || instead) &&
          !FindPool(view_.config, other)->place.OwnsWholeCores()) {
        given |= theirs;
      }
    }
    return core.IsSubsetOf(given);
  }

  /// Takes `taken` from the pool `name`, and the CPUs that it may not keep without them.
  void GiveWay(const std::string& name, const CpuSet& taken) {
    CpuSet& cpus = pools_.at(name);
    const CpuSet lost = FindPool(view_.config, name)->place.OwnsWholeCores()
                            ? cpus & view_.machine.CoresOf(taken)
                            : cpus & taken;
    cpus -= lost;
    free_ |= lost;
  }

  /// The CPUs of the pools after order[i] whose region contains its region and more.
  CpuSet OfWider(const std::vector<std::string>& order, std::size_t i) const {
    const CpuSet& region = regions_.at(order[i]);
    CpuSet cpus;
    for (std::size_t later = i + 1; later < order.size(); ++later) {
      const CpuSet& wider = regions_.at(order[later]);
      if (wider.Count() > region.Count() && region.IsSubsetOf(wider)) {
        cpus |= pools_.at(order[later]);
      }
    }
    return cpus;
  }

  const View& view_;
  const PoolAsks& asks_;
  const Regions& regions_;
  CpuSet free_;  ///< in no pool
  const bool some_avoid_;
  PoolMap pools_;
};

/// The number of instances of the pool `name` that have containers.
int InstancesInUse(const PoolAsks& asks, const std::string& name) {
  return static_cast<int>(std::count_if(asks.begin(), asks.end(), [&](const auto& ask) {
    return ask.second.in_use && ConfiguredName(ask.first) == ConfiguredName(name);
  }));
}

PoolMap SizedOnce(const View& view, const PoolAsks& asks, const Regions& regions,
                  const CpuSet& elastic, const std::set<std::string>& may_shrink) {
  Chooser chooser(view, asks, regions, elastic);
  return chooser.Choose(
      SizesWithin(asks, regions, chooser.Held(may_shrink), CapacityOf(view, elastic)));
}

bool SomeOwnWholeCores(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(),
                     [](const auto& pool) { return pool.second.place.OwnsWholeCores(); });
}

PoolMap Sized(const View& view, const PoolAsks& asks, const Regions& regions, const CpuSet& elastic,
              const std::set<std::string>& may_shrink) {
  PoolMap pools = SizedOnce(view, asks, regions, elastic, may_shrink);
  if (view.offline.Empty() || !SomeOwnWholeCores(view.config)) {
    return pools;
  }
  // Whole cores can have several sizes: CPUs that one pool leaves may suit a pool that chose
  // before.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    CpuState then = view.state;
    then.pools = pools;
    PoolMap again = SizedOnce(WithState(view, then), asks, regions, elastic, {});
    if (again == pools) {
      break;
    }
    pools = std::move(again);
  }
  return pools;
}

/// OK when the instance `pool` is allowed, and there are CPUs for all minimums.
Status CheckBounds(const View& view, const AsksAround& asks, const CpuSet& elastic,
                   const std::string& pool) {
  const int most = FindPool(view.config, pool)->instances.value_or(InstanceRule()).max;
  if (most > 0 &&
      InstancesInUse(asks.after, pool) > std::max(most, InstancesInUse(asks.before, pool))) {
    return Errorf(StatusCode::kResourceExhausted, "pool {} has reached instances.max, which is {}",
                  ConfiguredName(pool), most);
  }
  const int capacity = CapacityOf(view, elastic);
  const int least = SumOfMinimums(asks.before);
  // If the minimums exceed the capacity already, a candidate must not add to them.
  if (SumOfMinimums(asks.after) > std::max(least, capacity)) {
    return Errorf(StatusCode::kResourceExhausted,
                  "pool {} has no CPU, and none is left for it beside the {} that pools must keep",
                  pool, least);
  }
  return OkStatus();
}

}  // namespace

bool HasElasticPools(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(),
                     [](const auto& pool) { return pool.second.size.has_value(); });
}

PoolMap PoolsAsRequested(const View& view) {
  if (view.memo != nullptr) {
    if (const PoolMap* known = view.memo->FindAsRequested(view.offline); known != nullptr) {
      return *known;
    }
  }
  const PoolAsks asks = RequestsOnly(AsksOf(view));
  const CpuSet elastic = ElasticCpus(view);
  const Regions regions = RegionsOf(view, asks, elastic, nullptr);
  Chooser chooser(view, asks, regions, elastic);
  PoolMap pools = chooser.Choose(SizesWithin(asks, regions, {}, CapacityOf(view, elastic)));
  if (view.memo != nullptr) {
    view.memo->KeepAsRequested(view.offline, pools);
  }
  return pools;
}

bool FitBeside(const View& view, const ContainerKey& key, const CpuSet& cpus) {
  if (!HasElasticPools(view.config)) {
    return true;
  }
  CpuState then = view.state;
  then.exclusive[key].cpus = cpus;
  const PoolMap after = PoolsAsRequested(WithState(view, then));
  const PoolMap before = PoolsAsRequested(view);
  return std::all_of(before.begin(), before.end(), [&](const auto& pool) {
    const auto left = after.find(pool.first);
    return left == after.end() ? pool.second.Empty() : left->second.Count() >= pool.second.Count();
  });
}

PoolMap SizedPools(const View& view, const std::set<std::string>& may_shrink) {
  if (!HasElasticPools(view.config)) {
    return view.state.pools;
  }
  const PoolAsks asks = AsksOf(view);
  const CpuSet elastic = ElasticCpus(view);
  return Sized(view, asks, RegionsOf(view, asks, elastic, nullptr), elastic, may_shrink);
}

namespace {

StatusOr<PoolMap> PlanWith(const View& view, const Candidate& candidate) {
  const AsksAround asks = AsksAroundOf(view, candidate);
  const CpuSet elastic = ElasticCpus(view);
  QRM_RETURN_IF_ERROR(CheckBounds(view, asks, elastic, candidate.guest.pool));
  const Regions regions = RegionsOf(view, asks.after, elastic, &candidate);
  QRM_RETURN_IF_ERROR(CheckRegion(view, asks.after, regions, candidate.guest.pool));
  return Sized(view, asks.after, regions, elastic, {});
}

}  // namespace

StatusOr<PoolMap> PoolsWith(const View& view, Candidate candidate) {
  const PoolConfig* const pool = FindPool(view.config, candidate.guest.pool);
  if (pool == nullptr || !pool->place.numa_required) {
    candidate.hint = {};  // decides nothing: hints and allocation have one plan
  }
  if (view.memo == nullptr) {
    return PlanWith(view, candidate);
  }
  if (const auto* known = view.memo->Find(candidate, view.offline); known != nullptr) {
    return *known;
  }
  StatusOr<PoolMap> planned = PlanWith(view, candidate);
  view.memo->Keep(std::move(candidate), view.offline, planned);
  return planned;
}

bool LeavesSomeIdle(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(), [](const auto& named) {
    const PoolConfig& pool = named.second;
    return pool.size.value_or(ElasticSize()).round != ElasticSize::Round::kCpu ||
           pool.place.OwnsWholeCores() || pool.place.numa_required || pool.place.core_required;
  });
}

std::set<std::string> PoolsWithSurplus(const View& view) {
  std::set<std::string> pools;
  if (!HasElasticPools(view.config)) {
    return pools;
  }
  const PoolAsks asks = AsksOf(view);
  const CpuSet elastic = ElasticCpus(view);
  const PoolSizes sizes =
      SizesWithin(asks, RegionsOf(view, asks, elastic, nullptr), {}, CapacityOf(view, elastic));
  for (const auto& [name, size] : sizes) {
    const auto now = view.state.pools.find(name);
    if (now != view.state.pools.end() && (now->second & elastic).Count() > size) {
      pools.insert(name);
    }
  }
  return pools;
}

Status CheckMinimums(const View& view) {
  for (const auto& [name, pool] : view.config.pools) {
    const int largest = LargestRegion(view.machine, pool.place, ElasticCpus(view));
    if (const int least = LeastInUse(view.machine, pool);
        pool.size.has_value() && least > largest) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot give pool {} {} CPUs: place.require allows at most {}; lower size.min, "
                    "or require less",
                    name, least, largest);
    }
  }
  const int least = SumOfMinimums(AsksOf(view));
  const int capacity = CapacityOf(view, ElasticCpus(view));
  if (least > capacity) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot give elastic pools the {} CPUs of their minimums: only {} are available besides "
        "reserved CPUs, pools of fixed size and one CPU of the default pool; lower min or fixed",
        least, capacity);
  }
  return OkStatus();
}

}  // namespace qrm::cpu
