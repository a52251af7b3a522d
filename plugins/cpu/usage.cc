// Compares what pools have with what is asked of them.
#include "plugins/cpu/usage.h"

#include <algorithm>
#include <utility>

#include "plugins/cpu/borrow.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/fit_config.h"
#include "plugins/cpu/pool_asks.h"

namespace qrm::cpu {
namespace {

using Clip = PoolUsage::Clip;

Clip ClipOf(const PoolAsk& ask, int size) {
  if (size < ask.wish) {
    return Clip::kRoom;
  }
  return ask.sought > ask.max ? Clip::kMax : Clip::kNothing;
}

/// The CPUs of pools that others use, too.
CpuSet LentCpus(const View& view) {
  CpuSet borrowed;
  for (const auto& [name, cpus] : Borrow(view, view.state.pools)) {
    borrowed |= cpus;
  }
  CpuSet owned;
  for (const auto& [name, cpus] : view.state.pools) {
    owned |= cpus;
  }
  return borrowed & owned;
}

}  // namespace

StatusOr<CpuUsage> UsageOf(const CpuPluginConfig& config, const Machine& machine, PoolMap pools,
                           const sdk::Grants& grants) {
  QRM_ASSIGN_OR_RETURN(const FittingConfig fitting, FitCpuConfig(machine, config));
  CpuState state = Rebuild(machine, fitting.config, pools, grants).state;
  pools.merge(state.pools);  // those that nobody keeps yet
  state.pools = std::move(pools);
  const View view{machine, fitting.config, state, nullptr, machine.OfflineNow()};
  CpuUsage usage{.idle = IdleCpus(view), .lent = LentCpus(view)};
  for (const auto& [name, ask] : AsksOf(view)) {
    PoolUsage& pool = usage.pools[std::string(ConfiguredName(name))];
    pool.wished += std::max(ask.sought, ask.min);
    pool.clipped = std::max(pool.clipped, ClipOf(ask, PoolCpus(view, name).Count()));
  }
  return usage;
}

}  // namespace qrm::cpu
