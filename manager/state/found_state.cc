// Repairs the state found at start.
#include "manager/state/found_state.h"

#include "manager/state/machine_fit.h"

namespace qrm::manager {

std::set<std::string> ResourcesOf(const checkpoint::NodeState& state) {
  std::set<std::string> resources;
  state.ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      for (const auto& [resource, allocation] : record->allocations) {
        resources.insert(record->PluginOf(resource));
      }
    }
  });
  for (const auto& [uid, waiting] : state.pending_removals()) {
    resources.insert(waiting.begin(), waiting.end());
  }
  return resources;
}

std::vector<std::string> Repair(checkpoint::OpenedStore& opened, const Machine& machine) {
  MachineFit fit = FitToMachine(opened.state, machine);
  std::vector<std::string> repairs = opened.repairs;
  repairs.insert(repairs.end(), fit.repairs.begin(), fit.repairs.end());
  if (const Status saved = opened.store->Remember(fit.change); !saved.ok()) {
    repairs.push_back(MessageOf(saved));
  }
  opened.state = opened.store->state();
  return repairs;
}

}  // namespace qrm::manager
