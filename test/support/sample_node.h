// A node with a few pods, for tests that only read it.
#pragma once

#include <string>

#include "checkpoint/node_state.h"
#include "topology/machine.h"

namespace qrm::test {

inline constexpr uint64_t kGiB = uint64_t{1} << 30;

/// `nodes` NUMA nodes of one package and `cpus_per_node` CPUs each, 16 GiB a node.
inline Machine SampleMachine(int nodes = 2, int cpus_per_node = 4) {
  MachineParts parts;
  for (int node = 0; node < nodes; ++node) {
    parts.nodes.push_back({.id = node, .package = node, .memory_bytes = 16 * kGiB});
    for (int i = 0; i < cpus_per_node; ++i) {
      const int id = node * cpus_per_node + i;
      parts.cpus.push_back(
          {.id = id, .core = id, .l3 = node * cpus_per_node, .node = node, .package = node});
    }
  }
  return Machine(std::move(parts));
}

inline checkpoint::PodMeta SamplePod(const std::string& name,
                                     const std::string& pod_namespace = "default") {
  return {.uid = "uid-" + name,
          .pod_namespace = pod_namespace,
          .name = name,
          .qos_class = "Guaranteed",
          .labels = {{"app", name}}};
}

inline ResourceAllocation OwnCpus(const std::string& cpus) {
  return {.oci_property = std::string(kCpusetCpus),
          .value = cpus,
          .is_scalar_resource = true,
          .quantity = static_cast<double>(CpuSet::Parse(cpus).value_or(CpuSet{}).Count()),
          .exclusive = true};
}

inline ResourceAllocation SharedCpus(const std::string& cpus, double quantity) {
  return {.oci_property = std::string(kCpusetCpus),
          .value = cpus,
          .is_scalar_resource = true,
          .quantity = quantity};
}

inline ResourceAllocation NodeMemory(const std::map<uint64_t, uint64_t>& bytes_by_node) {
  ResourceAllocation memory{.oci_property = std::string(kCpusetMems), .is_scalar_resource = true};
  NumaMask nodes;
  for (const auto& [node, bytes] : bytes_by_node) {
    nodes.Add(static_cast<int>(node));
    memory.quantity += static_cast<double>(bytes);
  }
  memory.value = ToString(nodes);
  memory.amount_by_node = bytes_by_node;
  return memory;
}

/// Admits `container` of `pod` with `allocations`.
inline checkpoint::Change Admit(const checkpoint::PodMeta& pod, const std::string& container,
                                AllocationByResource allocations,
                                ContainerType type = ContainerType::kMain, uint64_t index = 0) {
  checkpoint::Change change;
  change.put_containers.push_back(
      {.pod = pod,
       .container = container,
       .record = {.type = type, .index = index, .allocations = std::move(allocations)}});
  return change;
}

/// Admits a sidecar of `pod` that is at `index` among its init containers.
inline checkpoint::Change AdmitRestartableInit(const checkpoint::PodMeta& pod,
                                               const std::string& container, uint64_t index) {
  checkpoint::Change change = Admit(pod, container, {}, ContainerType::kSidecar, index);
  change.put_containers[0].record.restartable_init = true;
  return change;
}

}  // namespace qrm::test
