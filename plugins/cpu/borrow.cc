// Computes what pools borrow.
#include "plugins/cpu/borrow.h"

#include <algorithm>
#include <string>

#include "plugins/cpu/pick.h"

namespace qrm::cpu {
namespace {

/// None where the default pool has all that is left.
CpuSet IdleCpus(const View& view, const PoolMap& pools) {
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

}  // namespace

PoolMap Borrow(const View& view, const PoolMap& pools) {
  PoolMap borrowed;
  const CpuSet idle = BorrowsIdleCpus(view.config) ? IdleCpus(view, pools) : CpuSet();
  for (const auto& [name, config] : view.config.pools) {
    const CpuSet& own = pools.at(name);
    if (config.borrow_idle != IdleSpan::kNone) {
      borrowed[name] |= Within(view.machine, idle, config.borrow_idle, own);
    }
    if (config.lend.to.empty()) {
      continue;
    }
    const CpuSet present = own - view.offline;
    const CpuSet lent = DropCpus(view.machine, present, present.Count() - config.lend.keep);
    for (const std::string& borrower : config.lend.to) {
      borrowed[borrower] |= lent;
    }
  }
  std::erase_if(borrowed, [](const auto& pool) { return pool.second.Empty(); });
  return borrowed;
}

CpuSet UsedCpus(const View& view, const std::string& pool) {
  const PoolMap borrowed = Borrow(view, view.state.pools);
  const auto found = borrowed.find(pool);
  return found == borrowed.end() ? PoolCpus(view, pool) : PoolCpus(view, pool) | found->second;
}

}  // namespace qrm::cpu
