// Chooses NUMA nodes for pools, and divides each region among the pools that have no other.
#include "plugins/cpu/regions.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/pool_asks.h"

namespace qrm::cpu {
namespace {

bool PacksNodes(const View& view, const std::string& pool) {
  const PoolConfig* const config = FindPool(view.config, pool);
  return config == nullptr || !config->instances.has_value() ||
         config->instances->fill == InstanceRule::Fill::kPacked;
}

/// The CPUs of `shared` of the kind, and near the devices, that `rule` requires.
CpuSet KindOf(const Machine& machine, const PlaceRule& rule, const CpuSet& shared) {
  CpuSet cpus = rule.core_required ? shared & CpusOfKind(machine, rule.core) : shared;
  if (rule.near_required) {
    cpus &= machine.CpusOf(rule.near_nodes);
  }
  return cpus;
}

/// The node with most of `cpus`; the lowest number of equal ones.
std::optional<int> NodeOfMost(const Machine& machine, const CpuSet& cpus) {
  std::optional<int> best;
  int most = 0;
  for (const NumaNode& node : machine.nodes()) {
    if (const int here = (node.cpus & cpus).Count(); here > most) {
      best = node.id;
      most = here;
    }
  }
  return best;
}

/// What pools that must stay on one node ask for.
struct Asked {
  int firm = 0;
  int wish = 0;
};
using AskedByNode = std::map<int, Asked>;

/// A pool that has no node yet.
struct Homeless {
  CpuSet may;  ///< the CPUs that it may have
  const PoolAsk& ask;
  bool packs;
  NumaMask hint;  ///< nodes that were chosen for it; empty: any
  NumaMask near;  ///< nodes that it prefers; empty: none
};

/// A node with the requested CPUs, if possible near the pool's devices and with the CPUs that it
/// wishes for. Of several such nodes, the first or the one with most room, as the rule says.
std::optional<int> ChooseHome(const Machine& machine, const Homeless& pool,
                              const AskedByNode& asked) {
  std::optional<int> best;
  std::tuple<bool, bool, bool, bool, int> least;
  for (const NumaNode& node : machine.nodes()) {
    const int all = (node.cpus & pool.may).Count();
    if (all == 0) {
      continue;
    }
    const auto found = asked.find(node.id);
    const Asked others = found == asked.end() ? Asked() : found->second;
    const int left = all - others.wish;
    const bool fits = left >= pool.ask.wish;
    const bool hinted = pool.hint.Empty() || pool.hint.Has(node.id);
    const bool near = pool.near.Empty() || pool.near.Has(node.id);
    const auto cost = std::tuple(!hinted, all - others.firm < pool.ask.firm, !near, !fits,
                                 pool.packs && fits ? 0 : -left);
    if (!best.has_value() || cost < least) {
      best = node.id;
      least = cost;
    }
  }
  return best;
}

void StayOn(const Machine& machine, int node, const PoolAsk& ask, CpuSet& region,
            AskedByNode& asked) {
  region &= machine.FindNode(node)->cpus;
  asked[node].firm += ask.firm;
  asked[node].wish += ask.wish;
}

/// What containers request from pools that can only have CPUs of `region`.
int RequestedWithin(const PoolAsks& asks, const Regions& regions, const CpuSet& region) {
  int requested = 0;
  for (const auto& [name, ask] : asks) {
    requested += regions.at(name).IsSubsetOf(region) ? ask.firm : 0;
  }
  return requested;
}

/// The different regions, the smallest first.
std::vector<CpuSet> Distinct(const Regions& regions) {
  std::vector<CpuSet> distinct;
  for (const auto& [name, region] : regions) {
    if (std::find(distinct.begin(), distinct.end(), region) == distinct.end()) {
      distinct.push_back(region);
    }
  }
  std::stable_sort(distinct.begin(), distinct.end(),
                   [](const CpuSet& a, const CpuSet& b) { return a.Count() < b.Count(); });
  return distinct;
}

std::string CoreKindName(PlaceRule::Core kind) {
  switch (kind) {
    case PlaceRule::Core::kPerformance:
      return "performance cores";
    case PlaceRule::Core::kEfficient:
      return "efficient cores";
    case PlaceRule::Core::kAny:
      break;
  }
  return "cores";
}

void SortByPriority(const PoolAsks& asks, std::vector<std::string>& pools) {
  std::stable_sort(pools.begin(), pools.end(), [&](const auto& a, const auto& b) {
    return asks.at(a).priority > asks.at(b).priority;
  });
}

/// "node 0: 8 of 32 left, node 1: 2 of 32 left"
std::string LeftByNode(const View& view, const PoolAsks& others, const CpuSet& may) {
  const Regions regions = RegionsOf(view, others, may, nullptr);
  std::vector<std::string> parts;
  for (const NumaNode& node : view.machine.nodes()) {
    const CpuSet here = node.cpus & may;
    parts.push_back(fmt::format("node {}: {} of {} left", node.id,
                                here.Count() - RequestedWithin(others, regions, here),
                                here.Count()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

PlaceRule RuleOf(const View& view, const std::string& pool, const PoolAsk& ask) {
  const PoolConfig* const config = FindPool(view.config, pool);
  PlaceRule rule = config == nullptr ? PlaceRule() : config->place;
  rule.near_nodes |= ask.near;
  return rule;
}

Regions RegionsOf(const View& view, const PoolAsks& asks, const CpuSet& shared,
                  const Candidate* candidate) {
  Regions regions;
  AskedByNode asked;
  std::vector<std::string> homeless;
  for (const auto& [name, ask] : asks) {
    const PlaceRule rule = RuleOf(view, name, ask);
    CpuSet& region = regions[name];
    region = KindOf(view.machine, rule, shared);
    if (const auto node = NodeOfInstance(view.config, name);
        node.has_value() && view.machine.FindNode(*node) != nullptr) {
      StayOn(view.machine, *node, ask, region, asked);
      continue;
    }
    if (!rule.numa_required) {
      continue;
    }
    const auto held = view.state.pools.find(name);
    if (const auto home = held == view.state.pools.end()
                              ? std::nullopt
                              : NodeOfMost(view.machine, held->second & region);
        home.has_value()) {
      StayOn(view.machine, *home, ask, region, asked);
    } else {
      homeless.push_back(name);
    }
  }
  SortByPriority(asks, homeless);
  for (const std::string& name : homeless) {
    const bool comes = candidate != nullptr && candidate->guest.pool == name;
    CpuSet& region = regions.at(name);
    const PlaceRule rule = RuleOf(view, name, asks.at(name));
    const Homeless pool = {
        .may = rule.OwnsWholeCores() ? view.machine.WholeCores(region, view.offline) : region,
        .ask = asks.at(name),
        .packs = PacksNodes(view, name),
        .hint = comes ? candidate->hint : NumaMask(),
        .near = rule.near_nodes};
    if (const auto home = ChooseHome(view.machine, pool, asked); home.has_value()) {
      StayOn(view.machine, *home, asks.at(name), region, asked);
    }
  }
  return regions;
}

PoolSizes SizesWithin(PoolAsks asks, const Regions& regions,
                      const std::map<std::string, PoolHeld>& held, int capacity) {
  for (const CpuSet& region : Distinct(regions)) {
    if (region.Count() >= capacity) {
      break;  // limited by what all pools share
    }
    PoolAsks within;
    for (const auto& [name, ask] : asks) {
      if (regions.at(name).IsSubsetOf(region)) {
        within.insert({name, ask});
      }
    }
    const PoolSizes sizes = SettlePools(within, held, region.Count());
    for (const auto& [name, size] : sizes) {
      PoolAsk& ask = asks.at(name);
      ask.max = std::min(ask.max, size);
      ask.wish = std::min(ask.wish, size);
      ask.min = std::min(ask.min, size);
    }
  }
  return SettlePools(asks, held, capacity);
}

int LargestRegion(const Machine& machine, PlaceRule rule, const CpuSet& shared) {
  rule.near_required = rule.near_required && !rule.NearResources();  // resources may be anywhere
  const CpuSet may = KindOf(machine, rule, shared);
  if (!rule.numa_required) {
    return may.Count();
  }
  int largest = 0;
  for (const NumaNode& node : machine.nodes()) {
    largest = std::max(largest, (node.cpus & may).Count());
  }
  return largest;
}

Status CheckRegion(const View& view, const PoolAsks& asks, const Regions& regions,
                   const std::string& pool) {
  const PlaceRule rule = RuleOf(view, pool, asks.at(pool));
  const CpuSet& region = regions.at(pool);
  if (rule.near_required && rule.near_nodes.Empty()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "pool {} wants CPUs near {}, but kubelet reported no such device of the pod on a "
                  "known NUMA node; have the pod request one, or require less",
                  pool, fmt::join(rule.near, ", "));
  }
  if ((!rule.numa_required && !rule.core_required && !rule.near_required) ||
      RequestedWithin(asks, regions, region) <= region.Count()) {
    return OkStatus();
  }
  PoolAsks others = asks;
  others.erase(pool);
  return Errorf(StatusCode::kResourceExhausted, "pool {} wants {} CPUs of {}{}{} ({})", pool,
                asks.at(pool).firm, rule.numa_required ? "one NUMA node's " : "",
                CoreKindName(rule.core),
                rule.near_required ? fmt::format(" near {}", fmt::join(rule.near, ", ")) : "",
                LeftByNode(view, others, KindOf(view.machine, rule, ElasticCpus(view))));
}

}  // namespace qrm::cpu
