// Refuses what a plugin may not give: unknown knobs, places that do not exist, CPUs that belong to
// another container, more memory than a NUMA node has.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "topology/machine.h"

namespace qrm::manager {

/// CPUs that one container has for itself; valid as long as the state that it is of.
struct ExclusiveCpus {
  const checkpoint::PodMeta& pod;
  const std::string& container;
  ContainerType type;
  CpuSet cpus;
};

/// The CPUs that a container with `allocations` has for itself.
CpuSet OwnedCpus(const AllocationByResource& allocations);

/// The CPUs that any container of `state` has for itself. Cost: O(pods that have some).
CpuSet OwnedCpus(const checkpoint::NodeState& state);

/// Those of them that the container `key` does not have for itself, too, in its turn. Cost: the
/// same.
CpuSet OwnedByOthers(const ContainerKey& key, const checkpoint::NodeState& state);

/// All exclusive CPUs of `state`. Cost: O(pods that have some).
std::vector<ExclusiveCpus> FindExclusiveCpus(const checkpoint::NodeState& state);

/// OK when what `allocation` binds of each NUMA node of `machine` fits beside what the other
/// containers of `state` bind (checkpoint/holdings.h), be it that those on several nodes make way.
/// Errors: kResourceExhausted, naming the node and the amounts.
/// Cost:   O(containers of the pod); where others must make way, that of MemoryFlow for all bound.
Status CheckBoundMemory(const ContainerKey& key, ContainerType type,
                        const ResourceAllocation& allocation, const Machine& machine,
                        const checkpoint::NodeState& state);

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
