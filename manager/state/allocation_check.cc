// The checks of every allocation before it is committed.
#include "manager/state/allocation_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/container_turns.h"
#include "checkpoint/holdings.h"
#include "topology/memory_flow.h"

namespace qrm::manager {
namespace {

bool IsOther(const ExclusiveCpus& owner, const ContainerKey& key, ContainerType type) {
  const bool same_pod = owner.pod.uid == key.pod_uid;
  return !same_pod ||
         (!owner.is_inferred && owner.container != key.container && !RunInTurn(owner.type, type));
}

bool IsInferred(const AllocationByResource& allocations) {
  return std::any_of(allocations.begin(), allocations.end(),
                     [](const auto& allocation) { return allocation.second->is_inferred; });
}

Status CheckCpus(const ContainerKey& key, ContainerType type, const CpuSet& cpus,
                 const Machine& machine, const std::vector<ExclusiveCpus>& exclusive) {
  if (!cpus.IsSubsetOf(machine.cpu_set())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave CPUs {}, but {} are not online here (online: {}); restart the plugin "
                  "with this machine's topology",
                  ToString(cpus), ToString(cpus - machine.cpu_set()), ToString(machine.cpu_set()));
  }
  for (const ExclusiveCpus& other : exclusive) {
    if (IsOther(other, key, type) && cpus.Intersects(other.cpus)) {
      return Errorf(
          StatusCode::kInvalidArgument,
          "it gave CPUs {}, but {} belong to container {} of pod {}/{}; try again after the next "
          "reconcile, which resyncs the plugin",
          ToString(cpus), ToString(cpus & other.cpus), other.container, other.pod.pod_namespace,
          other.pod.name);
    }
  }
  return OkStatus();
}

Status CheckNodes(const NumaMask& nodes, const Machine& machine) {
  if (!nodes.IsSubsetOf(machine.node_mask())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave NUMA nodes {}, but {} do not exist here (existing: {}); restart the "
                  "plugin with this machine's topology",
                  ToString(nodes), ToString(nodes - machine.node_mask()),
                  ToString(machine.node_mask()));
  }
  return OkStatus();
}

/// A container and its new allocation, which replaces its recorded one.
struct Candidate {
  const ContainerKey& key;
  ContainerType type;
  const ResourceAllocation& allocation;
};

/// Takes the bound memory of a pod's containers, each anywhere within its nodes. For pods whose
/// init containers bind memory, use TakeAtOnce: later containers reuse that memory where it is.
/// False when there is not enough.
bool TakeBound(const checkpoint::PodRecord* pod, const Candidate* candidate, MemoryFlow& flow) {
  const auto take = [&flow](const ResourceAllocation& allocation) {
    uint64_t bytes = 0;
    for (const auto& [node, part] : allocation.amount_by_node) {
      bytes += part;
    }
    return flow.Take(NumaMask::Parse(allocation.value).value_or(NumaMask()), bytes).has_value();
  };
  bool fits = candidate == nullptr || take(candidate->allocation);
  if (pod == nullptr) {
    return fits;
  }
  for (const auto& [name, record] : pod->containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      const bool counts = candidate == nullptr || name != candidate->key.container;
      if (counts && checkpoint::IsBoundMemory(allocation)) {
        fits = fits && take(allocation);
      }
    }
  }
  return fits;
}

bool TakeAtOnce(const checkpoint::PodMemory& memory, MemoryFlow& flow) {
  bool fits = true;
  memory.ForEachNode([&](uint64_t node, uint64_t bytes) {
    fits = fits && flow.Take({static_cast<int>(node)}, bytes).has_value();
  });
  return fits;
}

bool BindsInits(const checkpoint::PodRecord& pod) {
  return std::any_of(pod.containers.begin(), pod.containers.end(), [](const auto& container) {
    const AllocationByResource& allocations = container.second->allocations;
    return container.second->type == ContainerType::kInit &&
           std::any_of(allocations.begin(), allocations.end(),
                       [](const auto& entry) { return checkpoint::IsBoundMemory(entry.second); });
  });
}

/// Whether all bound memory fits if memory that is bound to several nodes moves to make room.
bool FitsWhereOthersMakeWay(const Candidate& candidate, const Machine& machine,
                            const checkpoint::NodeState& state) {
  NodeBytes has;
  for (const NumaNode& node : machine.nodes()) {
    has[node.id] = node.memory_bytes;
  }
  MemoryFlow flow(has);
  const checkpoint::PodRecord* const own = state.FindPod(candidate.key.pod_uid);
  bool fits = false;
  if (candidate.type != ContainerType::kInit && (own == nullptr || !BindsInits(*own))) {
    fits = TakeBound(own, &candidate, flow);
  } else {
    checkpoint::PodMemory with = own == nullptr
                                     ? checkpoint::PodMemory()
                                     : checkpoint::PodMemory(*own, candidate.key.container);
    with.Add(candidate.type, candidate.allocation.amount_by_node);
    fits = TakeAtOnce(with, flow);
  }
  state.ForEachPod([&](const checkpoint::PodRecord& pod) {
    if (fits && &pod != own) {
      fits = BindsInits(pod) ? TakeAtOnce(checkpoint::PodMemory(pod), flow)
                             : TakeBound(&pod, nullptr, flow);
    }
  });
  return fits;
}

}  // namespace

CpuSet OwnedCpus(const AllocationByResource& allocations) {
  CpuSet owned;
  for (const auto& [resource, allocation] : allocations) {
    if (checkpoint::IsExclusiveCpuset(allocation)) {
      owned |= CpuSet::Parse(allocation->value).value_or(CpuSet());
    }
  }
  return owned;
}

CpuSet OwnedCpus(const checkpoint::NodeState& state) {
  CpuSet owned;
  for (const ExclusiveCpus& exclusive : FindExclusiveCpus(state)) {
    owned |= exclusive.cpus;
  }
  return owned;
}

CpuSet OwnedByOthers(const ContainerKey& key, const checkpoint::NodeState& state) {
  const checkpoint::ContainerRecord* const record = state.Find(key);
  CpuSet owned = OwnedCpus(state);
  return record == nullptr ? owned : owned - OwnedCpus(record->allocations);
}

CpuSet CpusBeingLeft(const checkpoint::NodeState& state, const ContainerKey& key) {
  CpuSet left;
  state.ForEachCpuOwner([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      const auto applied = record->applied.find(std::string(kCpusetCpus));
      const CpuSet owned = OwnedCpus(record->allocations);
      if (applied == record->applied.end() || owned.Empty() ||
          (name == key.container && pod.meta.uid == key.pod_uid)) {
        continue;
      }
      CpuSet leaves = CpuSet::Parse(applied->second).value_or(CpuSet()) - owned;
      for (const auto& [resource, allocation] : record->allocations) {
        leaves -= CpuSet::Parse(allocation->shares).value_or(CpuSet());
      }
      left |= leaves;
    }
  });
  return left;
}

std::vector<ExclusiveCpus> FindExclusiveCpus(const checkpoint::NodeState& state) {
  std::vector<ExclusiveCpus> exclusive;
  state.ForEachCpuOwner([&exclusive](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      if (CpuSet cpus = OwnedCpus(record->allocations); !cpus.Empty()) {
        exclusive.push_back(
            {pod.meta, name, record->type, std::move(cpus), IsInferred(record->allocations)});
      }
    }
  });
  return exclusive;
}

Status CheckBoundMemory(const ContainerKey& key, ContainerType type,
                        const ResourceAllocation& allocation, const Machine& machine,
                        const checkpoint::NodeState& state) {
  if (!checkpoint::IsBoundMemory(allocation)) {
    return OkStatus();
  }
  using checkpoint::PodMemory;
  const checkpoint::PodRecord* const pod = state.FindPod(key.pod_uid);
  const PodMemory before = pod == nullptr ? PodMemory() : PodMemory(*pod);
  PodMemory with = pod == nullptr ? PodMemory() : PodMemory(*pod, key.container);
  with.Add(type, allocation.amount_by_node);
  for (const auto& [node, bytes] : allocation.amount_by_node) {
    const auto bound = state.bound_memory().find(node);
    const uint64_t by_all = bound == state.bound_memory().end() ? 0 : bound->second;
    const uint64_t at_once = by_all - before.AtOnce(node) + with.AtOnce(node);
    const NumaNode* const found = machine.FindNode(static_cast<int>(node));
    const uint64_t has = found == nullptr ? 0 : found->memory_bytes;
    if (at_once > has && !FitsWhereOthersMakeWay({key, type, allocation}, machine, state)) {
      return Errorf(StatusCode::kResourceExhausted,
                    "it bound {} bytes to NUMA node {}, which has {}, so that {} would be bound "
                    "there in total; delete a pod that is bound there, or wait for the next "
                    "reconcile, which resyncs the plugin",
                    bytes, node, has, at_once);
    }
  }
  return OkStatus();
}

Status CheckOnline(const ResourceAllocation& allocation, OnlineCpus needed, const CpuSet& offline) {
  if (offline.Empty() || allocation.oci_property != kCpusetCpus) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(allocation.value));
  const CpuSet missing = cpus & offline;
  const bool all = needed == OnlineCpus::kAllOwned && allocation.exclusive;
  if (missing.Empty() || (!all && missing != cpus)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kResourceExhausted,
                "its CPUs are {}, of which {} are offline; bring them online (write 1 to "
                "/sys/devices/system/cpu/cpu{}/online), or delete its pod",
                allocation.value, ToString(missing), *missing.begin());
}

bool IsEmptyCpuset(const ResourceAllocation& allocation) {
  return (allocation.oci_property == kCpusetCpus || allocation.oci_property == kCpusetMems) &&
         allocation.value.empty() && allocation.shares.empty();
}

Status CheckAllocation(const ContainerKey& key, ContainerType type,
                       const ResourceAllocation& allocation, const Machine& machine,
                       const std::vector<ExclusiveCpus>& exclusive) {
  if (allocation.oci_property == kCpusetCpus) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(allocation.value));
    QRM_ASSIGN_OR_RETURN(const CpuSet shares, CpuSet::Parse(allocation.shares));
    // Shared CPUs that no longer exist are removed when their pool changes.
    return CheckCpus(key, type, cpus | (shares & machine.cpu_set()), machine, exclusive);
  }
  if (allocation.oci_property == kCpusetMems) {
    QRM_ASSIGN_OR_RETURN(const NumaMask nodes, NumaMask::Parse(allocation.value));
    return CheckNodes(nodes, machine);
  }
  return OkStatus();
}

}  // namespace qrm::manager
