// Writes the cpu plugin's state.
#include "plugins/cpu/export_json.h"

#include <nlohmann/json.hpp>

#include "plugins/cpu/classes.h"
#include "plugins/cpu/pools.h"
#include "plugins/rules/pod_entries_json.h"

namespace qrm::cpu {

using nlohmann::ordered_json;

std::string ExportJson(const View& view, const sdk::Grants& grants,
                       const std::map<int, double>& headroom) {
  const CpuSet exclusive = ExclusiveCpus(view.state);
  const CpuSet left =
      view.state.pools.contains(kDefaultPool) ? PoolCpus(view, kDefaultPool) : LeftCpus(view);
  ordered_json nodes = ordered_json::object();
  for (const NumaNode& node : view.machine.nodes()) {
    nodes[std::to_string(node.id)] = {
        {"reserved_cpuset", ToString(node.cpus & view.config.reserved)},
        {"allocated_cpuset", ToString(node.cpus & exclusive)},
        {"default_cpuset", ToString(node.cpus & left)},
    };
  }
  ordered_json state = {{"machineState", std::move(nodes)}};
  for (const auto& [name, cpus] : view.state.pools) {
    state["pools"][name] = ToString(cpus);
  }
  for (const auto& [name, cpus] : Borrow(view, view.state.pools)) {
    state["borrowed"][name] = ToString(cpus);
  }
  for (const auto& [name, cpus] : PlanOf(view).cpus) {
    state["classes"][name] = ToString(cpus);
  }
  for (const auto& [node, cpus] : headroom) {
    state["headroom"][std::to_string(node)] = cpus;
  }
  state["pod_entries"] = rules::PodEntriesJson(grants);
  return state.dump(4);
}

}  // namespace qrm::cpu
