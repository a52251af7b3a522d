// Looks up the classes of owners.
#include "plugins/cpu/classes.h"

#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/pools.h"
#include "plugins/kernel/knob.h"

namespace qrm::cpu {
namespace {

std::string ClassOf(const CpuPluginConfig& config, const Holding& holding) {
  const auto grant = config.grants.find(holding.tenant.role);
  return grant == config.grants.end() ? "" : grant->second.rule.cpu_class;
}

}  // namespace

kernel::TuningPlan PlanOf(const View& view) {
  kernel::TuningPlan plan{.profiles = view.config.classes};
  if (plan.profiles.empty()) {
    return plan;
  }
  const auto add = [&](const std::string& name, const CpuSet& cpus) {
    if (!name.empty()) {
      plan.cpus[name] |= cpus - view.offline;
    }
  };
  for (const auto& [key, holding] : view.state.exclusive) {
    if (holding.by_driver) {
      plan.foreign |= holding.cpus;
    } else {
      add(ClassOf(view.config, holding), holding.cpus);
    }
  }
  for (const auto& [name, cpus] : view.state.pools) {
    const PoolConfig* const pool = FindPool(view.config, name);
    add(pool == nullptr ? "" : pool->cpu_class, cpus);
  }
  add(view.config.reserved_class, view.config.reserved - ExclusiveCpus(view.state));
  add(view.config.idle_class, IdleCpus(view));
  return plan;
}

StringMap ClassDefaultsOf(const CpuPluginConfig& config, const Placement& place) {
  const PoolConfig* const pool = place.exclusive ? nullptr : FindPool(config, place.pool);
  const std::string none;
  const std::string& name = place.exclusive   ? place.exclusive->cpu_class
                            : pool != nullptr ? pool->cpu_class
                                              : none;
  const auto found = config.classes.find(name);
  StringMap defaults = found == config.classes.end() ? StringMap() : found->second.qos;
  if (pool != nullptr && pool->idle_weight) {
    defaults.try_emplace(kernel::kSchedulingType, kernel::kIdleClass);
  }
  return defaults;
}

}  // namespace qrm::cpu
