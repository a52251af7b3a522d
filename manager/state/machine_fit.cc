// Checks every recorded allocation against the machine as if it were new.
#include "manager/state/machine_fit.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "manager/state/allocation_check.h"

namespace qrm::manager {

MachineFit FitToMachine(const checkpoint::NodeState& state, const Machine& machine) {
  MachineFit fit;
  state.ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      checkpoint::ContainerRecord fitting = *record;
      for (const auto& [resource, allocation] : record->allocations) {
        if (CheckAllocation({pod.meta.uid, name}, record->type, allocation, machine, {}).ok()) {
          continue;
        }
        fitting.allocations.erase(resource);
        fit.repairs.push_back(fmt::format(
            "container {} of pod {}/{} had {} {} '{}', which this machine does not have (CPUs {}, "
            "NUMA nodes {}): it is placed again",
            name, pod.meta.pod_namespace, pod.meta.name, resource, allocation.oci_property,
            allocation.value, ToString(machine.cpu_set()), ToString(machine.node_mask())));
      }
      if (fitting.allocations.size() != record->allocations.size()) {
        fit.change.put_containers.push_back({pod.meta, name, std::move(fitting)});
      }
    }
  });
  return fit;
}

}  // namespace qrm::manager
