// How much memory and how many hugepages each NUMA node has, and what is held of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "topology/machine.h"

namespace qrm {

/// Bytes by type: kOrdinaryMemory, "hugepages-2Mi", "hugepages-1Gi" ...
/// Units: bytes. Source: Kubernetes, names of resources.
using MemoryBytes = std::map<std::string, uint64_t>;

/// The type of memory that is not in hugepages.
inline constexpr char kOrdinaryMemory[] = "memory";

/// One type on one node; `free` + `reserved` is `allocatable`, unless the node shrank below what is
/// held. Units: bytes. Source: Kubernetes 1.36, MemoryTable.
struct MemoryAmounts {
  uint64_t total = 0;
  uint64_t system_reserved = 0;
  uint64_t allocatable = 0;
  uint64_t reserved = 0;  ///< held by containers
  uint64_t free = 0;
};

/// One node. Units: blocks, the kernel's node numbers, bytes by type.
/// Source: Kubernetes 1.36, NUMANodeState.
struct NodeMemory {
  int assignments = 0;  ///< blocks whose mask has this node
  NumaMask cells;       ///< the group it serves: itself, or all nodes of the blocks on it
  std::map<std::string, MemoryAmounts> types;
};

/// The nodes by their number.
using MemoryTable = std::map<int, NodeMemory>;

/// What a container holds of one type. Units: bytes. Source: Kubernetes 1.36, Block.
struct MemoryBlock {
  NumaMask nodes;
  std::string type;
  uint64_t bytes = 0;

  bool operator==(const MemoryBlock&) const = default;
};

/// "hugepages-2Mi" for 2097152: the largest binary unit that divides it.
/// Source: Kubernetes, HugePageResourceName and quantity formats.
std::string HugepagesType(uint64_t page_bytes);

/// All of `machine` free except `reserved` (by node). Memory of hugepages is not ordinary memory.
/// Units: bytes. Cost: O(nodes x types). Source: Kubernetes 1.36, getDefaultMachineState.
MemoryTable UnusedMemory(const Machine& machine, const std::map<int, MemoryBytes>& reserved);

/// Takes `block` from its nodes in ascending order, as far as they have it, and counts it on each
/// of them. Returns what each node gave.
/// Units: bytes. Cost: O(nodes). Source: Kubernetes 1.36, static policy, updateMachineState.
std::map<int, uint64_t> Hold(const MemoryBlock& block, MemoryTable& table);

/// Takes `bytes` of `type` from one node without counting a block; more than it has leaves nothing
/// free. Returns what was free of them. Units: bytes. Cost: O(log).
uint64_t HoldOnNode(int node, const std::string& type, uint64_t bytes, MemoryTable& table);

/// The sum of one amount of `type` over the nodes of `mask`.
/// Units: bytes. Cost: O(nodes).
uint64_t Sum(const MemoryTable& table, const NumaMask& mask, const std::string& type,
             uint64_t MemoryAmounts::* amount);

}  // namespace qrm
