// Computes what pools borrow.
#include "plugins/cpu/borrow.h"

#include <algorithm>
#include <string>

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/pick.h"
#include "plugins/cpu/place.h"

namespace qrm::cpu {
namespace {

/// None if the default pool has all CPUs that are left.
CpuSet IdleBeside(const View& view, const PoolMap& pools) {
  if (!pools.contains(kDefaultPool)) {
    return {};
  }
  CpuSet idle = ShareableCpus(view) - view.offline;
  for (const auto& [name, cpus] : pools) {
    idle -= cpus;
  }
  return idle;
}

CpuSet Within(const Machine& machine, const CpuSet& idle, IdleSpan span, const CpuSet& own) {
  switch (span) {
    case IdleSpan::kNone:
      break;
    case IdleSpan::kNuma:
      return idle & machine.CpusOf(machine.NodesOf(own));
    case IdleSpan::kPackage:
      return idle & machine.PackagesOf(machine.NodesOf(own));
    case IdleSpan::kAll:
      return idle;
  }
  return {};
}

bool BorrowsIdleCpus(const CpuPluginConfig& config) {
  return std::any_of(config.pools.begin(), config.pools.end(),
                     [](const auto& pool) { return pool.second.borrow_idle != IdleSpan::kNone; });
}

/// How many of its CPUs the pool `name` does not lend. If its use counts: all until it is measured.
int KeptBy(const View& view, const std::string& name, const LendRule& rule) {
  if (!rule.keeps_used) {
    return rule.keep;
  }
  if (ContainersIn(view.state, name) == 0) {
    return 0;
  }
  const PoolSizes used = view.used == nullptr ? PoolSizes() : *view.used;
  const auto found = used.find(name);
  return found == used.end() ? CpuSet::kMaxIds : found->second;
}

/// Lends all but `keep` of the CPUs `own` of an owner to all pools that `rule` names.
void Lend(const CpuSet& own, int keep, const Machine& machine, const LendRule& rule,
          const PoolMap& pools, PoolMap& borrowed) {
  const CpuSet lent = DropCpus(machine, own, own.Count() - keep);
  for (const auto& [borrower, cpus] : pools) {
    if (std::find(rule.to.begin(), rule.to.end(), ConfiguredName(borrower)) != rule.to.end()) {
      borrowed[borrower] |= lent;
    }
  }
}

}  // namespace

CpuSet IdleCpus(const View& view) {
  return IdleBeside(view, view.state.pools);
}

PoolMap Borrow(const View& view, const PoolMap& pools) {
  PoolMap borrowed;
  const CpuSet idle = BorrowsIdleCpus(view.config) ? IdleBeside(view, pools) : CpuSet();
  for (const auto& [name, own] : pools) {
    const PoolConfig* const config = FindPool(view.config, name);
    if (config == nullptr) {
      continue;
    }
    if (config->borrow_idle != IdleSpan::kNone) {
      borrowed[name] |= Within(view.machine, idle, config->borrow_idle, own);
    }
    if (!config->lend.to.empty()) {
      Lend(own - view.offline, KeptBy(view, name, config->lend), view.machine, config->lend, pools,
           borrowed);
    }
  }
  std::erase_if(borrowed, [](const auto& pool) { return pool.second.Empty(); });
  return borrowed;
}

CpuSet UsedCpus(const View& view, const PoolMap& pools, const std::string& pool) {
  const auto own = pools.find(pool);
  CpuSet cpus = own == pools.end() ? PoolCpus(view, pool) : own->second;
  const PoolMap borrowed = Borrow(view, pools);
  if (const auto more = borrowed.find(pool); more != borrowed.end()) {
    cpus |= more->second;
  }
  const PoolConfig* const config = FindPool(view.config, pool);
  return config == nullptr ? cpus : ThreadsInUse(view.machine, config->place, cpus);
}

CpuSet UsedCpus(const View& view, const std::string& pool) {
  return UsedCpus(view, view.state.pools, pool);
}

}  // namespace qrm::cpu
