// Rows about memory, read into the values of the topology engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/hint.h"
#include "api/resource.h"
#include "test/vector_check/report.h"
#include "topology/node_memory.h"

namespace qrm::vectors {

MemoryBytes BytesOf(const Json& amounts);

/// Pod UID -> container -> blocks.
using MemoryAssignments = std::map<std::string, std::map<std::string, std::vector<MemoryBlock>>>;

/// Kubelet's record of memory: the nodes, and the allocations of each container.
struct KubeletMemory {
  MemoryTable nodes;
  MemoryAssignments assignments;
};

KubeletMemory StateOf(const Json& row);

/// A container of a row's pod.
struct MemoryContainer {
  ContainerType type = ContainerType::kMain;
  int index = 0;  ///< position among the pod's (init) containers
  MemoryBytes bytes;
};

/// The container `name` of the row's pod; it asks for nothing when the pod is not Guaranteed.
MemoryContainer ContainerOf(const Json& row, const std::string& name);
/// The init containers of the pod that end before `name` starts, in their order.
std::vector<std::string> EndedBefore(const Json& row, const std::string& name);

TopologyHint HintOf(const Json& row);

/// The machine that a row describes, and what is reserved on it.
struct MemoryMachine {
  explicit MemoryMachine(const Json& row);

  Machine machine;
  std::map<int, MemoryBytes> reserved;
};

/// Whether two states of the nodes differ in nothing that matters: free and reserved bytes need
/// only agree summed over each node's group, because blocks do not say what each node gave.
/// Source: Kubernetes 1.36, areMachineStatesEqual.
bool SameMemory(const MemoryTable& a, const MemoryTable& b);

/// How `got` differs from the row's expected state.
Difference CompareState(const KubeletMemory& got, const Json& expected);

/// How hints, which are for all types, differ from the row's expected hints of each type.
Difference CompareHints(const Json& row, const std::string& got);

/// The rows' checks by the functions that the memory plugin calls.
Difference CheckPolicyByFunction(const Json& row);
Difference CheckGroupRuleByFunction(const Json& row);

/// Rows about the plugin's state, which no function of the engine has, and about a pod's requests,
/// which are the manager's part.
void CheckMemoryState(const Json& file, Report& report);

}  // namespace qrm::vectors
