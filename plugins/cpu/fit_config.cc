// Compares the configured CPUs with those that there are.
#include "plugins/cpu/fit_config.h"

#include <string_view>
#include <utility>

#include "plugins/cpu/elastic.h"
#include "plugins/cpu/pools.h"
#include "plugins/cpu/state.h"
#include "topology/cpu_assignment.h"

namespace qrm::cpu {
namespace {

/// Takes out of the configured `cpus` of `pool` what the machine lacks, unless that is all: then
/// they are a mistake.
void CutDown(const Machine& machine, std::string_view pool, CpuSet& cpus,
             std::vector<std::string>& repairs) {
  const CpuSet known = cpus & machine.cpu_set();
  if (known.Empty() || known == cpus) {
    return;
  }
  repairs.push_back(fmt::format("pool {} is without CPUs {}: the machine has {}", pool,
                                ToString(cpus - known), ToString(machine.cpu_set())));
  cpus = known;
}

/// Reserves CPUs as kubelet does when their number is configured.
Status FitStaticConfig(const Machine& machine, const StaticConfig& mode, CpuSet& reserved) {
  const CpuLayout layout = CpuLayout::LikeKubelet(machine);
  const std::size_t sockets = layout.elements(CpuLayout::kPackage).size();
  const std::size_t nodes = layout.elements(CpuLayout::kNode).size();
  if (mode.options.align_by_socket && sockets > nodes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot align CPUs by socket: the machine has {} sockets and only {} NUMA nodes; "
                  "leave static.align-by-socket out",
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
  for (auto& [name, pool] : config.pools) {
    CutDown(machine, name, pool.cpus, repairs);
  }
  if (!config.reserved.IsSubsetOf(machine.cpu_set())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot reserve CPUs {}: the machine has {}; correct reserved-cpus",
                  ToString(config.reserved), ToString(machine.cpu_set()));
  }
  if (config.static_mode) {
    QRM_RETURN_IF_ERROR(FitStaticConfig(machine, *config.static_mode, config.reserved));
  }
  CpuState initial = InitialState(config);
  QRM_RETURN_IF_ERROR(CheckMinimums({machine, config, initial}));
  initial.pools = SizedPools({machine, config, initial});
  for (auto& [name, pool] : config.pools) {
    pool.cpus = initial.pools.at(name);
  }
  QRM_RETURN_IF_ERROR(CheckPools({machine, config, initial}, initial.pools));
  return FittingConfig{std::move(config), std::move(repairs)};
}

}  // namespace qrm::cpu
