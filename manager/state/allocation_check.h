// Rejects invalid allocations of plugins: CPUs and NUMA nodes that do not exist, exclusive CPUs of
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

/// The exclusive CPUs of one container; valid as long as its state.
struct ExclusiveCpus {
  const checkpoint::PodMeta& pod;
  const std::string& container;
  ContainerType type;
  CpuSet cpus;
  bool is_inferred = false;  ///< containers of the pod may have the same
};

/// The exclusive CPUs of a container with `allocations`.
CpuSet OwnedCpus(const AllocationByResource& allocations);

/// The exclusive CPUs of all containers of `state`. Cost: O(pods with exclusive CPUs).
CpuSet OwnedCpus(const checkpoint::NodeState& state);

/// The same without the exclusive CPUs of the container `key`, even if containers of its pod that
/// run before or after it use them, too. Cost: the same.
CpuSet OwnedByOthers(const ContainerKey& key, const checkpoint::NodeState& state);

/// The CPUs that owners of CPUs, except the container `key`, still run on although their records
/// give them others: they leave these with their next update. Cost: O(pods with exclusive CPUs).
CpuSet CpusBeingLeft(const checkpoint::NodeState& state, const ContainerKey& key);

/// All exclusive CPUs of `state`, by container. Cost: O(pods with exclusive CPUs).
std::vector<ExclusiveCpus> FindExclusiveCpus(const checkpoint::NodeState& state);

/// OK when the memory that `allocation` binds on each NUMA node of `machine` fits beside the bound
/// memory of the other containers of `state` (checkpoint/holdings.h). Memory that is bound to
/// several nodes may move between them to make room.
/// Errors: kResourceExhausted, naming the node and the amounts.
/// Cost:   O(containers of the pod); if others must make room, that of MemoryFlow for all of them.
Status CheckBoundMemory(const ContainerKey& key, ContainerType type,
                        const ResourceAllocation& allocation, const Machine& machine,
                        const checkpoint::NodeState& state);

/// The CPUs that a container needs online: all its exclusive CPUs, or, for a restart, any CPU.
enum class OnlineCpus { kAllOwned, kSome };

/// OK when the needed CPUs of `allocation` are not `offline`. Errors: kResourceExhausted, naming
/// the CPUs.
Status CheckOnline(const ResourceAllocation& allocation, OnlineCpus needed, const CpuSet& offline);

/// Whether `allocation` names CpusetCpus or CpusetMems and gives none: the plugin has not decided
/// yet. Source: Katalyst's managers, which apply no empty cpuset.
bool IsEmptyCpuset(const ResourceAllocation& allocation);

/// OK when `allocation` is valid for the container `key` of `type` on `machine`, beside the
/// `exclusive` CPUs of others. Containers of its pod that run before or after it may share its
/// CPUs. CheckProperty must have accepted it. Errors: kInvalidArgument, naming the value and the
/// problem.
Status CheckAllocation(const ContainerKey& key, ContainerType type,
                       const ResourceAllocation& allocation, const Machine& machine,
                       const std::vector<ExclusiveCpus>& exclusive);

}  // namespace qrm::manager
