// Computes the CPUs and memory of each container by NUMA node.
#include <algorithm>
#include <string_view>

#include "api/proto/qrm/v1/control.pb.h"
#include "manager/control/control_answers.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using checkpoint::PodRecord;

constexpr std::string_view kMemory = "memory";

/// The CPUs and memory of one container.
struct Holding {
  CpuSet exclusive;
  CpuSet shared;
  std::map<uint64_t, uint64_t> memory_by_node;
};

Holding HoldingOf(const ContainerRecord& record) {
  Holding holding;
  for (const auto& [resource, allocation] : record.allocations) {
    if (allocation->oci_property == kCpusetCpus) {
      const CpuSet cpus = CpuSet::Parse(allocation->value).value_or(CpuSet{});
      (allocation->exclusive ? holding.exclusive : holding.shared) |= cpus;
    }
    holding.shared |= CpuSet::Parse(allocation->shares).value_or(CpuSet{});
    if (resource == kMemory) {
      holding.memory_by_node = allocation->amount_by_node;
    }
  }
  return holding;
}

uint64_t MemoryOn(const Holding& holding, int node) {
  const auto found = holding.memory_by_node.find(static_cast<uint64_t>(node));
  return found == holding.memory_by_node.end() ? 0 : found->second;
}

/// Adds the part of `holding` on `node` to `use`.
void AddUse(const std::string& container, const Holding& holding, const NumaNode& node,
            v1::NodeUse& use) {
  const CpuSet cpus = (holding.exclusive | holding.shared) & node.cpus;
  const uint64_t memory = MemoryOn(holding, node.id);
  if (cpus.Empty() && memory == 0) {
    return;
  }
  use.set_memory_bytes(use.memory_bytes() + memory);
  v1::ContainerUse& message = *use.add_containers();
  message.set_container(container);
  message.set_cpus(ToString(cpus));
  message.set_exclusive(holding.exclusive.Intersects(node.cpus));
  message.set_memory_bytes(memory);
}

}  // namespace

std::vector<v1::NodeUse> NodeUses(const NodeState& state, const Machine& machine) {
  std::vector<v1::NodeUse> uses(machine.nodes().size());
  CpuSet exclusive;
  CpuSet shared;
  state.ForEachPod([&](const PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      const Holding holding = HoldingOf(*record);
      exclusive |= holding.exclusive;
      shared |= holding.shared;
      const std::string full_name = pod.meta.pod_namespace + "/" + pod.meta.name + "/" + name;
      for (std::size_t i = 0; i < uses.size(); ++i) {
        AddUse(full_name, holding, machine.nodes()[i], uses[i]);
      }
    }
  });
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const NumaNode& node = machine.nodes()[i];
    uses[i].set_node(node.id);
    std::sort(uses[i].mutable_containers()->begin(), uses[i].mutable_containers()->end(),
              [](const auto& a, const auto& b) { return a.container() < b.container(); });
    uses[i].set_exclusive_cpus(ToString(exclusive & node.cpus));
    uses[i].set_shared_cpus(ToString((shared - exclusive) & node.cpus));
    uses[i].set_free_cpus(ToString(node.cpus - exclusive - shared));
  }
  return uses;
}

}  // namespace qrm::manager
