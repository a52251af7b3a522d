// Repairs the state found at start.
#include "manager/state/found_state.h"

#include <utility>

#include <fmt/format.h>

#include "manager/state/allocation_check.h"

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

MachineFit FitToMachine(const checkpoint::NodeState& state, const Machine& machine) {
  MachineFit fit;
  std::set<std::pair<const ResourceAllocation*, ContainerType>> good;  // most containers share them
  state.ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      std::vector<SharedText> unfit;
      for (const auto& [resource, allocation] : record->allocations) {
        const std::pair<const ResourceAllocation*, ContainerType> one{&*allocation, record->type};
        if (good.contains(one)) {
          continue;
        }
        if (CheckAllocation({pod.meta.uid, name}, record->type, allocation, machine, {}).ok()) {
          good.insert(one);
          continue;
        }
        unfit.push_back(resource);
        fit.repairs.push_back(fmt::format(
            "container {} of pod {}/{} had {} {} '{}', which this machine does not have (CPUs {}, "
            "NUMA nodes {}): it gets a new allocation",
            name, pod.meta.pod_namespace, pod.meta.name, resource, allocation->oci_property,
            allocation->value, ToString(machine.cpu_set()), ToString(machine.node_mask())));
      }
      if (!unfit.empty()) {
        checkpoint::ContainerRecord fitting = *record;
        for (const SharedText& resource : unfit) {
          fitting.allocations.erase(resource);
        }
        fit.change.put_containers.push_back({pod.meta, name, std::move(fitting)});
      }
    }
  });
  return fit;
}

}  // namespace qrm::manager
