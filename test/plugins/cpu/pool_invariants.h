// The rules of pools and owners, checked on a node without the plugin's algorithm.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/place.h"
#include "plugins/cpu/sizing/pool_size.h"
#include "test/plugins/cpu/driven_node.h"
#include "test/support/await.h"

namespace qrm::cpu {

inline ElasticSize SizeOf(const PoolConfig& pool) {
  return pool.size.value_or(ElasticSize());
}

/// The pool of a container that shares CPUs, by its role; containers with exclusive CPUs would have
/// the default one.
inline std::string PoolOf(const ContainerRequest& request) {
  const std::string& role = request.pod_role;
  return role.empty() || role == "own" ? kDefaultPool : role;
}

/// The largest number of CPUs that a pool may own. The bound of a pool that uses one thread of each
/// core counts only these threads; a pool of whole cores has at least one core.
inline int MostCpus(const Machine& machine, const PoolConfig& pool) {
  const int most = SizeOf(pool).max;
  if (!pool.place.OwnsWholeCores()) {
    return most;
  }
  const int threads = ThreadsPerCore(machine, CpusOfKind(machine, pool.place.core));
  return pool.place.threads == PlaceRule::Threads::kOnePerCore ? most * threads
                                                               : std::max(most, threads);
}

/// P1, P5, P6: each CPU has one owner, pools are within their bounds, reserved CPUs in none.
inline void CheckOwners(const DrivenNode& node) {
  CpuSet owned = node.config().reserved;
  const auto own = [&](const CpuSet& cpus, const std::string& owner) {
    ASSERT_FALSE(cpus.Intersects(owned)) << owner << " has " << ToString(cpus & owned);
    owned |= cpus;
  };
  for (const sdk::Pool& pool : node.PoolList()) {
    ASSERT_NO_FATAL_FAILURE(own(pool.cpus, "pool " + pool.name));
    if (const PoolConfig* const config = FindPool(node.config(), pool.name); config != nullptr) {
      ASSERT_LE(pool.cpus.Count(), MostCpus(node.machine(), *config)) << pool.name;
    }
  }
  for (const auto& [key, grant] : node.grants()) {
    const CpuSet cpus = *CpuSet::Parse(grant.allocation->value);
    ASSERT_FALSE(cpus.Empty()) << key.pod_uid;
    if (grant.allocation->exclusive) {
      ASSERT_NO_FATAL_FAILURE(own(cpus, key.pod_uid));
    }
  }
  ASSERT_TRUE(owned.IsSubsetOf(node.machine().cpu_set()));
}

/// P2, P3, P6: what is borrowed is idle or lent, and a pool that may use all idle CPUs does.
inline void CheckBorrowed(const DrivenNode& node) {
  const PoolMap pools = node.Pools();
  CpuSet idle = node.machine().cpu_set() - node.offline() - node.config().reserved;
  for (const auto& [name, cpus] : pools) {
    idle -= cpus;
  }
  idle -= node.Exclusive();
  const PoolMap borrowed = node.Borrowed();
  for (const auto& [name, pool] : node.config().pools) {
    CpuSet allowed = pool.borrow_idle == IdleSpan::kNone ? CpuSet() : idle;
    for (const auto& [lender, other] : node.config().pools) {
      const bool lends =
          std::find(other.lend.to.begin(), other.lend.to.end(), name) != other.lend.to.end();
      allowed |= lends ? pools.at(lender) : CpuSet();
    }
    ASSERT_TRUE(borrowed.at(name).IsSubsetOf(allowed))
        << name << " borrows " << ToString(borrowed.at(name) - allowed);
    ASSERT_TRUE(pool.borrow_idle != IdleSpan::kAll || idle.IsSubsetOf(borrowed.at(name))) << name;
  }
}

/// P3: a lender keeps some CPUs, and lends the others.
inline void CheckKept(const DrivenNode& node) {
  const PoolMap borrowed = node.Borrowed();
  for (const auto& [name, cpus] : node.Pools()) {
    const auto pool = node.config().pools.find(name);
    if (pool == node.config().pools.end()) {
      continue;
    }
    const CpuSet present = cpus - node.offline();
    CpuSet lent;
    for (const auto& [borrower, of_others] : borrowed) {
      lent |= of_others & present;
    }
    const LendRule& lend = pool->second.lend;
    const int kept = lend.to.empty() ? present.Count() : lend.keep;
    ASSERT_EQ(lent.Count(), std::max(present.Count() - kept, 0)) << name;
  }
}

/// The requests of the present containers only.
inline PoolSizes WantedSizes(const DrivenNode& node) {
  const CpuPluginConfig& config = node.config();
  int capacity = (node.machine().cpu_set() - node.offline() - config.reserved).Count();
  std::map<std::string, PoolDemand> demand;
  for (const auto& [key, grant] : node.grants()) {
    if (grant.allocation->exclusive) {
      capacity -= (*CpuSet::Parse(grant.allocation->value) - node.offline()).Count();
      continue;
    }
    PoolDemand& sum = demand[PoolOf(grant.request)];
    sum.milli_cpus += std::llround(grant.request.quantity() * 1000);
    ++sum.containers;
  }
  capacity -= config.pools.contains(kDefaultPool) ? 0 : 1;
  PoolAsks asks;
  for (const auto& [name, pool] : config.pools) {
    const ElasticSize size = SizeOf(pool);
    PoolAsk ask = {.min = size.min,
                   .max = size.max,
                   .priority = pool.priority,
                   .weight = pool.weight,
                   .in_use = demand.contains(name)};
    ask.min = std::max(ask.min, ask.in_use ? 1 : 0);
    ask.wish = WishOf(demand[name], size.ratio_percent, ask);
    asks[name] = ask;
  }
  return SizePools(asks, capacity);
}

/// The class of a CPU's owner, by the configuration; an offline CPU has none.
inline std::string ClassOf(const DrivenNode& node, int cpu) {
  const CpuPluginConfig& config = node.config();
  if (node.offline().Has(cpu)) {
    return "";
  }
  if (node.Exclusive().Has(cpu)) {
    return config.grants.at("own").rule.cpu_class;
  }
  for (const auto& [name, cpus] : node.Pools()) {
    if (cpus.Has(cpu)) {
      const auto pool = config.pools.find(name);
      return pool == config.pools.end() ? "" : pool->second.cpu_class;
    }
  }
  return config.reserved.Has(cpu) ? config.reserved_class : config.idle_class;
}

/// P20: each CPU is tuned by its owner's class, among the classes of DrawConfig. Without a class it
/// has its former values.
inline void CheckTuning(const DrivenNode& node) {
  if (!node.is_tuned()) {
    return;
  }
  std::map<int, std::string> wanted;
  for (const Cpu& cpu : node.machine().cpus()) {
    const std::string name = ClassOf(node, cpu.id);
    wanted[cpu.id] = name == "fast"   ? "2000000 3000000 "
                     : name == "slow" ? "800000 2000000 "
                                      : "800000 3000000 ";
  }
  const auto other = [&] {
    return std::find_if(wanted.begin(), wanted.end(),
                        [&](const auto& cpu) { return node.TuningOf(cpu.first) != cpu.second; });
  };
  ASSERT_TRUE(test::Await([&] { return other() == wanted.end(); }))
      << "CPU " << other()->first << " has " << node.TuningOf(other()->first) << ", its class has "
      << other()->second;
}

/// Whether the online CPUs are too few for the minimum of each pool and for one CPU in each pool
/// that is in use.
inline bool SomebodyLacks(const DrivenNode& node) {
  const PoolMap pools = node.Pools();
  const CpuSet& offline = node.offline();
  const auto is_below = [&](const auto& pool) {
    return (pools.at(pool.first) - offline).Count() < SizeOf(pool.second).min;
  };
  const auto has_none = [&](const auto& entry) {
    const sdk::Grant& grant = entry.second;
    return !grant.allocation->exclusive && (pools.at(PoolOf(grant.request)) - offline).Empty();
  };
  return std::any_of(node.config().pools.begin(), node.config().pools.end(), is_below) ||
         std::any_of(node.grants().begin(), node.grants().end(), has_none);
}

}  // namespace qrm::cpu
