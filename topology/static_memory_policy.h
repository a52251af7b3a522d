// Kubelet's static memory policy as pure functions: which NUMA nodes a container's memory is on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "topology/machine.h"
#include "topology/memory_flow.h"
#include "topology/node_memory.h"

namespace qrm {

/// What a container asks for. Units: bytes. Source: the pod's resources.
struct StaticMemoryRequest {
  MemoryBytes bytes;  ///< types without an entry are not asked for
  /// What init containers of its pod hold, which have ended when it starts; sidecars are not among
  /// them. In the order of the pod.
  std::vector<MemoryBlock> leftover;
};

/// The policy on one machine. A node serves either single-node blocks or one group of nodes, since
/// the kernel keeps a container within its nodes, but not to a part on each.
///
/// Threads: immutable, any. Units: bytes. Source: Kubernetes 1.36, memory manager, static policy.
class StaticMemoryPolicy {
 public:
  /// `machine` and `flows` must outlive this. With `flows`, containers that another rule places on
  /// several nodes make way; kubelet has no such containers. Cost: O(1).
  explicit StaticMemoryPolicy(const Machine& machine, const MemoryFlows* flows = nullptr)
      : machine_(machine), flows_(flows) {}

  /// The masks of nodes of `table` that can serve all of `request`, narrow ones first; preferred
  /// are those as narrow as allocatable amounts allow. At most 4,096; none when nothing fits.
  /// Cost: GenerateHints' times types.
  std::vector<TopologyHint> Hints(const MemoryTable& table,
                                  const StaticMemoryRequest& request) const;

  /// The nodes for `request`: those of `hint` when they suffice, else the best mask around them.
  /// Errors: kResourceExhausted when no mask has enough, kFailedPrecondition when the mask is wider
  ///         than a preferred hint promises, or mixes groups of nodes.
  /// Cost:   Hints' when the hint is empty or too small, else O(types x nodes).
  StatusOr<NumaMask> Choose(const MemoryTable& table, const StaticMemoryRequest& request,
                            const TopologyHint& hint) const;

 private:
  bool HasFree(const MemoryTable& table, const NumaMask& mask, const std::string& type,
               uint64_t bytes) const;

  const Machine& machine_;
  const MemoryFlows* flows_;
};

/// Shrinks the blocks of an ended init container by what `block` uses of them again, so that sums
/// stay right; returns how much that is.
/// Units: bytes. Cost: O(blocks). Source: Kubernetes 1.36, updateInitContainersMemoryBlocks.
uint64_t UseAgain(const MemoryBlock& block, std::vector<MemoryBlock>& leftover);

}  // namespace qrm
