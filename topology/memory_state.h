// How much memory and how many hugepages each NUMA node has, and who holds them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "topology/container_role.h"
#include "topology/machine.h"

namespace qrm {

/// Bytes by type: "memory", "hugepages-2Mi", "hugepages-1Gi" ...
/// Units: bytes. Source: Kubernetes, names of resources.
using MemoryBytes = std::map<std::string, uint64_t>;

/// One type on one node; `free` + `reserved` is `allocatable`.
/// Units: bytes. Source: Kubernetes 1.36, MemoryTable.
struct MemoryAmounts {
  uint64_t total = 0;
  uint64_t system_reserved = 0;
  uint64_t allocatable = 0;
  uint64_t reserved = 0;  ///< held by containers
  uint64_t free = 0;

  bool operator==(const MemoryAmounts&) const = default;
};

/// One node. Units: blocks, the kernel's node numbers, bytes by type.
/// Source: Kubernetes 1.36, NUMANodeState.
struct NodeMemory {
  int assignments = 0;  ///< blocks whose mask has this node
  NumaMask cells;       ///< the group it serves: itself, or all nodes of the blocks on it
  std::map<std::string, MemoryAmounts> types;

  bool operator==(const NodeMemory&) const = default;
};

/// What a container holds of one type. Units: bytes. Source: Kubernetes 1.36, Block; `parts`: ours.
struct MemoryBlock {
  NumaMask nodes;
  std::string type;
  uint64_t bytes = 0;
  std::map<int, uint64_t> parts;  ///< bytes per node; empty under kubelet's rules

  bool operator==(const MemoryBlock&) const = default;
};

/// What the nodes have and what containers hold of it. Units: bytes, the kernel's node numbers.
/// Source: Kubernetes 1.36, memory manager's state.
struct MemoryState {
  std::map<int, NodeMemory> nodes;
  /// pod uid -> container -> blocks.
  std::map<std::string, std::map<std::string, std::vector<MemoryBlock>>> assignments;
  /// Kubelet's rules: bytes that ended init containers of `reusable_pod` leave, by mask and type.
  std::string reusable_pod;
  std::map<std::pair<std::string, std::string>, uint64_t> reusable;

  /// The blocks of a container; null when it has none. Cost: O(log containers).
  const std::vector<MemoryBlock>* Find(const std::string& pod, const std::string& container) const;
};

/// "hugepages-2Mi" for 2097152: the largest binary unit that divides it.
/// Units: bytes. Cost: O(1). Source: Kubernetes, HugePageResourceName and quantity formats.
std::string HugepagesType(uint64_t page_bytes);

/// All of `machine` free but for `reserved` (by node). What hugepages take is not ordinary memory.
/// Units: bytes. Cost: O(nodes x types). Source: Kubernetes 1.36, getDefaultMachineState.
std::map<int, NodeMemory> UnusedMemory(const Machine& machine,
                                       const std::map<int, MemoryBytes>& reserved);

/// Whether two states of the nodes differ in nothing that matters: free and reserved bytes need
/// only agree summed over each node's group, because blocks do not say what each node gave.
/// Units: bytes. Cost: O(nodes squared x types). Source: Kubernetes 1.36, areMachineStatesEqual.
bool SameMemory(const std::map<int, NodeMemory>& a, const std::map<int, NodeMemory>& b);

/// A container of a pod, for PodMemoryRequest. Units: bytes. Source: the pod's resources.
struct ContainerMemory {
  ContainerRole role = ContainerRole::kApp;
  MemoryBytes bytes;
};

/// What a pod needs at its most demanding moment; init containers in their order, before the
/// others. A type that only init containers and sidecars request is left out. Units: bytes.
/// Cost: O(containers x types). Source: Kubernetes 1.36, getPodRequestedResources.
MemoryBytes PodMemoryRequest(const std::vector<ContainerMemory>& containers);

}  // namespace qrm
