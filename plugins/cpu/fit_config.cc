// Compares the configured CPUs with the machine's CPUs.
#include "plugins/cpu/fit_config.h"

#include <map>
#include <string_view>
#include <utility>

#include "api/base/errorf.h"
#include "plugins/cpu/devices.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/pools.h"
#include "plugins/cpu/state.h"
#include "topology/cpu_layout.h"

namespace qrm::cpu {
namespace {

/// Removes from the configured `cpus` of `pool` those that the machine lacks. If it lacks all of
/// them, they stay: the configuration is wrong.
void CutDown(const Machine& machine, std::string_view pool, CpuSet& cpus,
             std::vector<std::string>& repairs) {
  const CpuSet known = cpus & machine.cpu_set();
  if (known.Empty() || known == cpus) {
    return;
  }
  repairs.push_back(fmt::format("pool {} loses CPUs {}: the machine has {}", pool,
                                ToString(cpus - known), ToString(machine.cpu_set())));
  cpus = known;
}

/// `count` of `usable` CPUs for the system: whole cores as far as possible, from one NUMA node
/// after another, the lowest numbers first.
CpuSet SpreadOverNodes(const Machine& machine, const CpuSet& usable, int count) {
  std::map<int, CpuSet> free;
  for (const NumaNode& node : machine.nodes()) {
    free[node.id] = node.cpus & usable;
  }
  CpuSet taken;
  while (taken.Count() < count) {
    for (auto& [node, cpus] : free) {
      const CpuSet core = cpus.Empty() ? CpuSet() : machine.CoresOf({cpus.First()}) & cpus;
      cpus -= core;
      for (const int cpu : core) {
        if (taken.Count() < count) {
          taken.Add(cpu);
        }
      }
    }
  }
  return taken;
}

/// Chooses the reserved CPUs if only their number is configured.
Status FitReserved(const Machine& machine, CpuPluginConfig& config) {
  const CpuSet usable =
      machine.cpu_set() - (config.isolated_by_kernel ? machine.parts().isolated : config.isolated);
  if (config.reserved_count >= usable.Count()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot reserve {} CPUs: the machine has {} that are not isolated, and one is to "
                  "stay free for containers; lower reserved-cpus.count",
                  config.reserved_count, usable.Count());
  }
  if (config.reserved_count > 0) {
    config.reserved = SpreadOverNodes(machine, usable, config.reserved_count);
  }
  return OkStatus();
}

/// The CPUs that the kernel isolates, except those that the configuration gives to the system or a
/// pool.
void FitIsolated(const Machine& machine, CpuPluginConfig& config) {
  if (!config.isolated_by_kernel) {
    return;
  }
  config.isolated = (machine.parts().isolated & machine.cpu_set()) - config.reserved;
  for (const auto& [name, pool] : config.pools) {
    config.isolated -= pool.cpus;
  }
}

/// Reserves CPUs as kubelet does, if their number is configured.
Status FitStaticConfig(const Machine& machine, const StaticConfig& mode, CpuSet& reserved) {
  const CpuLayout layout = CpuLayout::LikeKubelet(machine);
  const std::size_t sockets = layout.elements(CpuLayout::kPackage).size();
  const std::size_t nodes = layout.elements(CpuLayout::kNode).size();
  if (mode.options.align_by_socket && sockets > nodes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot align CPUs by socket: the machine has {} sockets and only {} NUMA nodes; "
                  "remove static.align-by-socket",
                  sockets, nodes);
  }
  const int count = reserved.Empty() ? mode.reserved_count : reserved.Count();
  QRM_ASSIGN_OR_RETURN(reserved, ReservedCpus(layout, count, reserved, mode.options));
  return OkStatus();
}

}  // namespace

StatusOr<FittingConfig> FitCpuConfig(const Machine& machine, CpuPluginConfig config) {
  std::vector<std::string> repairs;
  CutDown(machine, kReservedPool, config.reserved, repairs);
  config.isolated &= machine.cpu_set();
  for (auto& [name, pool] : config.pools) {
    CutDown(machine, name, pool.cpus, repairs);
  }
  if (!config.reserved.IsSubsetOf(machine.cpu_set())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot reserve CPUs {}: the machine has {}; correct reserved-cpus",
                  ToString(config.reserved), ToString(machine.cpu_set()));
  }
  QRM_RETURN_IF_ERROR(FitDevices(machine, config, repairs));
  QRM_RETURN_IF_ERROR(FitReserved(machine, config));
  FitIsolated(machine, config);
  if (config.static_mode) {
    QRM_RETURN_IF_ERROR(FitStaticConfig(machine, *config.static_mode, config.reserved));
  }
  CpuState initial = InitialState(config);
  QRM_RETURN_IF_ERROR(CheckMinimums({machine, config, initial}));
  initial.pools = SizedPools({machine, config, initial});
  for (const auto& [name, cpus] : initial.pools) {
    if (const auto pool = config.pools.find(name); pool != config.pools.end()) {
      pool->second.cpus = cpus;  // not of an instance
    }
  }
  QRM_RETURN_IF_ERROR(CheckPools({machine, config, initial}, initial.pools));
  return FittingConfig{std::move(config), std::move(repairs)};
}

}  // namespace qrm::cpu
