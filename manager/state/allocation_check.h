// Refuses what a plugin may not give: unknown knobs, places that do not exist, CPUs that belong to
// another container, more memory than a NUMA node has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "topology/machine.h"

namespace qrm::manager {

/// CPUs that one container has for itself.
struct ExclusiveCpus {
  ContainerKey key;
  ContainerType type = ContainerType::kMain;
  std::string owner;  ///< "namespace/pod, container name": for messages
  CpuSet cpus;
};

/// The CPUs that a container with `allocations` has for itself.
CpuSet OwnedCpus(const AllocationByResource& allocations);

/// All exclusive CPUs of `state`. Cost: O(containers).
std::vector<ExclusiveCpus> FindExclusiveCpus(const checkpoint::NodeState& state);

/// The memory that one container is bound to. Units: bytes by NUMA node.
struct BoundMemory {
  ContainerKey key;
  ContainerType type = ContainerType::kMain;
  std::map<uint64_t, uint64_t> bytes_by_node;
};

/// All bound memory of `state`. Cost: O(containers).
std::vector<BoundMemory> FindBoundMemory(const checkpoint::NodeState& state);

/// OK when what `allocation` binds of each NUMA node of `machine` fits beside `bound`. Of a pod's
/// init containers the largest counts, as they run in turn, and only where the others need less.
/// Errors: kResourceExhausted, naming the node and the amounts.
Status CheckBoundMemory(const ContainerKey& key, ContainerType type,
                        const ResourceAllocation& allocation, const Machine& machine,
                        const std::vector<BoundMemory>& bound);

/// Which of its CPUs a container needs: all that it is given for itself, and some to start again.
enum class OnlineCpus { kAllOwned, kSome };

/// OK when those CPUs of `allocation` are not `offline`. Errors: kResourceExhausted, naming the
/// CPUs.
Status CheckOnline(const ResourceAllocation& allocation, OnlineCpus needed, const CpuSet& offline);

/// OK when `allocation` may be given to the container `key` of `type` on `machine` where others own
/// `exclusive`; those of its pod that run before or after it are no others. Errors:
/// kInvalidArgument, naming property, value and what is wrong with it.
Status CheckAllocation(const ContainerKey& key, ContainerType type,
                       const ResourceAllocation& allocation, const Machine& machine,
                       const std::vector<ExclusiveCpus>& exclusive);

}  // namespace qrm::manager
