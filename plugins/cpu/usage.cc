// Compares the CPUs of pools with what containers ask them for.
#include "plugins/cpu/usage.h"

#include <algorithm>
#include <utility>

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/pool_asks.h"
#include "plugins/cpu/pools.h"

namespace qrm::cpu {
namespace {

using Clip = PoolUsage::Clip;

Clip ClipOf(const PoolAsk& ask, int size) {
  if (size < ask.wish) {
    return Clip::kRoom;
  }
  return ask.sought > ask.max ? Clip::kMax : Clip::kNothing;
}

/// The CPUs of pools that others also use.
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

std::map<int, double> HeadroomOf(const View& view, const CpuSet& idle) {
  std::map<std::string, int64_t> milli_cpus;  // requested, by pool
  ForEachGuest(view.state, [&](const ContainerKey& /*key*/, const Guest& guest) {
    milli_cpus[guest.pool] += guest.milli_cpus;
  });
  std::map<int, double> headroom;
  for (const NumaNode& node : view.machine.nodes()) {
    headroom[node.id] = (node.cpus & idle).Count();
  }
  for (const auto& [name, cpus] : view.state.pools) {
    const PoolConfig* const config = FindPool(view.config, name);
    if (config == nullptr || config->lend.to.empty()) {
      continue;
    }
    const CpuSet own = cpus - view.offline;
    const double kept = std::max(static_cast<double>(config->lend.keep),
                                 static_cast<double>(milli_cpus[name]) / 1000);
    const double part = std::max(0.0, 1 - kept / std::max(own.Count(), 1));  // of its CPUs
    for (const NumaNode& node : view.machine.nodes()) {
      headroom[node.id] += part * (node.cpus & own).Count();
    }
  }
  return headroom;
}

std::map<std::string, PoolSize> SizesOf(const View& view) {
  std::map<std::string, PoolSize> sizes;
  for (const auto& [name, pool] : view.config.pools) {
    PoolSize& size = sizes[name];
    for (const auto& [instance, cpus] : view.state.pools) {
      size.now |= ConfiguredName(instance) == name ? cpus : CpuSet();
    }
    size.configured = pool.size.has_value() ? size.now : pool.cpus;
  }
  return sizes;
}

}  // namespace

CpuUsage UsageOf(View view) {
  view.advised = nullptr;
  CpuUsage usage{.sizes = SizesOf(view), .idle = IdleCpus(view), .lent = LentCpus(view)};
  usage.headroom = HeadroomOf(view, usage.idle);
  for (const auto& [name, ask] : AsksOf(view)) {
    PoolUsage& pool = usage.pools[std::string(ConfiguredName(name))];
    pool.wished += std::max(ask.sought, ask.min);
    pool.clipped = std::max(pool.clipped, ClipOf(ask, PoolCpus(view, name).Count()));
  }
  return usage;
}

}  // namespace qrm::cpu
