// Chooses NUMA nodes for memory and hugepages and accounts for them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "topology/machine.h"
#include "topology/memory_state.h"

namespace qrm {

/// By which rules memory is handed out. Source: Kubernetes 1.36, memory manager policies, and ours.
enum class MemoryPolicy {
  /// Kubelet's static policy: a node serves either single-node blocks or one group of nodes; a
  /// container is rejected when its own best mask is not as good as the merged hint.
  kStatic,
  /// Every block records what it takes from each node. Groups may overlap, a wider mask than hoped
  /// for is used rather than rejected, and a machine whose totals changed is accepted. The kernel
  /// keeps a container within its mask, but not to the parts recorded.
  kPerNode,
};

/// A container's request. Units: bytes. Source: the pod's resources and the merged hint.
struct MemoryRequest {
  std::string pod;  ///< uid
  std::string container;
  ContainerRole role = ContainerRole::kApp;
  MemoryBytes bytes;  ///< types without an entry are not asked for
  TopologyHint hint;  ///< merged hint; no nodes: the policy's own best
  /// The pod's init containers that end before this one starts, in their order; sidecars are not
  /// among them. What they hold is used again.
  std::vector<std::string> ended_inits;
};

/// Hands memory out on one machine. Every function takes a state and returns what follows from it.
///
/// Threads: immutable, any. Units: bytes.
/// Source:  Kubernetes 1.36, memory manager, static policy; kPerNode: ours.
class MemoryAssignment {
 public:
  /// `machine` must outlive this. `reserved`: bytes for the system, by node. Cost: O(nodes).
  MemoryAssignment(const Machine& machine, MemoryPolicy policy,
                   std::map<int, MemoryBytes> reserved);

  /// `state` ready to work on: all memory free when it is empty. kPerNode computes the amounts anew
  /// from the assignments; blocks on nodes that are gone hold nothing.
  /// Errors: kStatic: kFailedPrecondition when it contradicts itself or the machine.
  /// Cost:   O(blocks x nodes + nodes squared).
  StatusOr<MemoryState> Start(const MemoryState& state) const;

  /// The masks that can serve all of `request`, the same for each type, narrow ones first;
  /// preferred are those as narrow as allocatable amounts allow. No preference when nothing is
  /// asked for; a container that holds memory gets its own mask. At most 4,096.
  /// Cost: GenerateHints' times types.
  HintList Hints(const MemoryState& state, const MemoryRequest& request) const;

  /// `state` with memory for `request`; a container that holds memory keeps it.
  /// Errors: kResourceExhausted when no mask has enough, kStatic: kFailedPrecondition when its
  ///         rules forbid the mask; `state` is not changed.
  /// Cost:   Hints' when the hint is empty or too small, else O(types x nodes).
  StatusOr<MemoryState> Allocate(const MemoryState& state, const MemoryRequest& request) const;

  /// `state` without the container. Cost: O(blocks x nodes).
  MemoryState Remove(const MemoryState& state, const std::string& pod,
                     const std::string& container) const;

 private:
  std::vector<TopologyHint> Candidates(const MemoryState& state,
                                       const MemoryRequest& request) const;
  StatusOr<NumaMask> ChooseNodes(const MemoryState& state, const MemoryRequest& request) const;

  const Machine& machine_;
  const MemoryPolicy policy_;
  const std::map<int, MemoryBytes> reserved_;
};

/// Whether a block on `nodes` would break the rule that a node serves either single-node blocks or
/// one group. Units: the kernel's node numbers. Cost: O(nodes).
/// Source: Kubernetes 1.36, isAffinityViolatingNUMAAllocations.
bool BreaksGroupRule(const std::map<int, NodeMemory>& memory, const NumaMask& nodes);

}  // namespace qrm
