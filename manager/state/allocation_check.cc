// Implements the checks that every allocation passes before it is committed.
#include "manager/state/allocation_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/container_turns.h"
#include "manager/runtime/run_options.h"

namespace qrm::manager {
namespace {

bool IsOther(const ExclusiveCpus& owner, const ContainerKey& key, ContainerType type) {
  const bool in_turn = owner.key.pod_uid == key.pod_uid && RunInTurn(owner.type, type);
  return owner.key != key && !in_turn;
}

Status CheckCpus(const ContainerKey& key, ContainerType type, const CpuSet& cpus,
                 const Machine& machine, const std::vector<ExclusiveCpus>& exclusive) {
  if (!cpus.IsSubsetOf(machine.cpu_set())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave CPUs {} of which {} are not online here ({} are); restart the plugin on "
                  "this machine's topology",
                  ToString(cpus), ToString(cpus - machine.cpu_set()), ToString(machine.cpu_set()));
  }
  for (const ExclusiveCpus& other : exclusive) {
    if (IsOther(other, key, type) && cpus.Intersects(other.cpus)) {
      return Errorf(
          StatusCode::kInvalidArgument,
          "it gave CPUs {} of which {} belong to {} alone; each reconcile teaches the plugin "
          "what is recorded: try again then",
          ToString(cpus), ToString(cpus & other.cpus), other.owner);
    }
  }
  return OkStatus();
}

Status CheckNodes(const NumaMask& nodes, const Machine& machine) {
  if (!nodes.IsSubsetOf(machine.node_mask())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave NUMA nodes {} of which {} do not exist here ({} do); restart the plugin "
                  "on this machine's topology",
                  ToString(nodes), ToString(nodes - machine.node_mask()),
                  ToString(machine.node_mask()));
  }
  return OkStatus();
}

/// What one pod holds of one NUMA node.
struct PodBytes {
  uint64_t largest_init = 0;
  uint64_t others = 0;

  void Add(ContainerType type, uint64_t bytes) {
    if (type == ContainerType::kInit) {
      largest_init = std::max(largest_init, bytes);
    } else {
      others += bytes;
    }
  }
  uint64_t AtOnce() const { return std::max(largest_init, others); }
};

bool IsBound(const ResourceAllocation& allocation) {
  return allocation.oci_property == kCpusetMems && !allocation.amount_by_node.empty();
}

bool IsExclusiveCpuset(const ResourceAllocation& allocation) {
  return allocation.exclusive && allocation.oci_property == kCpusetCpus;
}

}  // namespace

CpuSet OwnedCpus(const AllocationByResource& allocations) {
  CpuSet owned;
  for (const auto& [resource, allocation] : allocations) {
    if (IsExclusiveCpuset(allocation)) {
      owned |= CpuSet::Parse(allocation.value).value_or(CpuSet());
    }
  }
  return owned;
}

std::vector<ExclusiveCpus> FindExclusiveCpus(const checkpoint::NodeState& state) {
  std::vector<ExclusiveCpus> exclusive;
  state.ForEachPod([&exclusive](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      for (const auto& [resource, allocation] : record->allocations) {
        StatusOr<CpuSet> cpus =
            IsExclusiveCpuset(allocation) ? CpuSet::Parse(allocation.value) : CpuSet();
        if (cpus.ok() && !cpus->Empty()) {
          exclusive.push_back({{pod.meta.uid, name},
                               record->type,
                               fmt::format("container {} of pod {}/{}", name,
                                           pod.meta.pod_namespace, pod.meta.name),
                               *std::move(cpus)});
        }
      }
    }
  });
  return exclusive;
}

std::vector<BoundMemory> FindBoundMemory(const checkpoint::NodeState& state) {
  std::vector<BoundMemory> bound;
  state.ForEachPod([&bound](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      for (const auto& [resource, allocation] : record->allocations) {
        if (IsBound(allocation)) {
          bound.push_back({{pod.meta.uid, name}, record->type, allocation.amount_by_node});
        }
      }
    }
  });
  return bound;
}

Status CheckBoundMemory(const ContainerKey& key, ContainerType type,
                        const ResourceAllocation& allocation, const Machine& machine,
                        const std::vector<BoundMemory>& bound) {
  if (!IsBound(allocation)) {
    return OkStatus();
  }
  for (const auto& [node, bytes] : allocation.amount_by_node) {
    std::map<std::string, PodBytes> by_pod;
    by_pod[key.pod_uid].Add(type, bytes);
    for (const BoundMemory& other : bound) {
      const auto held = other.bytes_by_node.find(node);
      if (other.key != key && held != other.bytes_by_node.end()) {
        by_pod[other.key.pod_uid].Add(other.type, held->second);
      }
    }
    uint64_t at_once = 0;
    for (const auto& [uid, of_pod] : by_pod) {
      at_once += of_pod.AtOnce();
    }
    const NumaNode* const found = machine.FindNode(static_cast<int>(node));
    const uint64_t has = found == nullptr ? 0 : found->memory_bytes;
    if (at_once > has) {
      return Errorf(StatusCode::kResourceExhausted,
                    "it bound {} bytes to NUMA node {}, which has {}, and with them {} would be "
                    "bound there; remove a pod that is bound there, or wait until the plugin has "
                    "learnt what the others hold",
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
                "/sys/devices/system/cpu/cpu{}/online), or remove its pod",
                allocation.value, ToString(missing), *missing.begin());
}

Status CheckAllocation(const ContainerKey& key, ContainerType type,
                       const ResourceAllocation& allocation, const Machine& machine,
                       const std::vector<ExclusiveCpus>& exclusive) {
  if (allocation.oci_property.empty()) {
    return OkStatus();
  }
  if (const Status known = CheckOciProperty(allocation.oci_property, allocation.value);
      !known.ok()) {
    return Annotate(known, "it gave what no runtime takes");
  }
  if (allocation.oci_property == kCpusetCpus) {
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus, CpuSet::Parse(allocation.value));
    return CheckCpus(key, type, cpus, machine, exclusive);
  }
  if (allocation.oci_property == kCpusetMems) {
    QRM_ASSIGN_OR_RETURN(const NumaMask nodes, NumaMask::Parse(allocation.value));
    return CheckNodes(nodes, machine);
  }
  return OkStatus();
}

}  // namespace qrm::manager
