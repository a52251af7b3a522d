// Builds the API's messages from records. Values without a NUMA node get no topology: an empty one
// would mean "on no node".
#include "manager/podresources/pod_resources_answers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "api/proto/podresources/v1/api.pb.h"
#include "api/proto/podresources/v1alpha1/api.pb.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using checkpoint::PodRecord;

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kMemory = "memory";

bool IsMemory(std::string_view resource) {
  return resource == kMemory || IsHugepages(resource);
}

/// The exclusive CPUs of the allocation.
CpuSet ExclusiveCpus(const ResourceAllocation& allocation) {
  if (!allocation.exclusive || allocation.oci_property != kCpusetCpus) {
    return {};
  }
  return CpuSet::Parse(allocation.value).value_or(CpuSet{});
}

/// Amounts come from plugins: an amount that is not a number of bytes counts as 0.
uint64_t BytesOf(double amount) {
  constexpr double kLimit = 9.0e18;
  return amount >= 1 && amount < kLimit ? static_cast<uint64_t>(amount) : 0;
}

using MemoryBlocks = ::google::protobuf::RepeatedPtrField<::v1::ContainerMemory>;

void AddMemoryBlock(const std::string& type, uint64_t bytes, const std::vector<int64_t>& nodes,
                    MemoryBlocks& blocks) {
  if (bytes == 0) {
    return;
  }
  ::v1::ContainerMemory& block = *blocks.Add();
  block.set_memory_type(type);
  block.set_size(bytes);
  for (const int64_t node : nodes) {
    block.mutable_topology()->add_nodes()->set_id(node);
  }
}

std::vector<int64_t> BoundNodes(const ResourceAllocation& allocation) {
  if (allocation.oci_property != kCpusetMems) {
    return {};
  }
  const NumaMask mask = NumaMask::Parse(allocation.value).value_or(NumaMask{});
  return {mask.begin(), mask.end()};
}

/// A block per NUMA node if the amounts by node are known, else one block for all nodes.
void AddMemory(const std::string& resource, const ResourceAllocation& allocation,
               ::v1::ContainerResources& container) {
  if (!allocation.amount_by_node.empty()) {
    for (const auto& [node, bytes] : allocation.amount_by_node) {
      AddMemoryBlock(resource, bytes, {static_cast<int64_t>(node)}, *container.mutable_memory());
    }
    return;
  }
  AddMemoryBlock(resource, BytesOf(allocation.quantity), BoundNodes(allocation),
                 *container.mutable_memory());
}

/// Hugepages are on the nodes of the container's memory.
void AddHugepages(const ContainerRecord& record, const ResourceAllocation& memory,
                  ::v1::ContainerResources& container) {
  for (const auto& [name, amount] : record.requests) {
    if (IsHugepages(name) && !record.allocations.contains(name)) {
      AddMemoryBlock(name, BytesOf(amount), BoundNodes(memory), *container.mutable_memory());
    }
  }
}

using AmountByNode = std::map<uint64_t, uint64_t>;

AmountByNode CountByNode(const CpuSet& cpus, const Machine& machine) {
  AmountByNode amounts;
  for (const int id : cpus) {
    if (const Cpu* cpu = machine.FindCpu(id); cpu != nullptr) {
      ++amounts[static_cast<uint64_t>(cpu->node)];
    }
  }
  return amounts;
}

using TopologyAwareQuantities = ::google::protobuf::RepeatedPtrField<::v1::TopologyAwareQuantity>;

void AddQuantities(const AmountByNode& amounts, TopologyAwareQuantities& list) {
  for (const auto& [node, amount] : amounts) {
    ::v1::TopologyAwareQuantity& quantity = *list.Add();
    quantity.set_node(node);
    quantity.set_resource_value(static_cast<double>(amount));
    quantity.set_topology_level(::v1::NUMA);
  }
}

/// `admitted` are the amounts at the admission; absent: they are the same.
void AddTopologyAware(const std::string& resource, const ResourceAllocation& allocation,
                      const AmountByNode& by_node,
                      const std::optional<checkpoint::Amounts>& admitted,
                      ::v1::ContainerResources& container) {
  ::v1::TopologyAwareResource& message = *container.add_resources();
  message.set_resource_name(resource);
  message.set_is_node_resource(allocation.is_node_resource);
  message.set_is_scalar_resource(allocation.is_scalar_resource);
  message.set_aggregated_quantity(allocation.quantity);
  AddQuantities(by_node, *message.mutable_topology_aware_quantity_list());
  auto& original = *message.mutable_original_topology_aware_quantity_list();
  if (!admitted.has_value()) {
    message.set_original_aggregated_quantity(allocation.quantity);
    original = message.topology_aware_quantity_list();
  } else {
    message.set_original_aggregated_quantity(admitted->quantity);
    AddQuantities(admitted->by_node, original);
  }
}

/// If a plugin reports no amounts by node, those of the list stay.
void ReplaceQuantities(const std::vector<PlacedQuantity>& told, TopologyAwareQuantities& list) {
  if (told.empty()) {
    return;
  }
  list.Clear();
  for (const PlacedQuantity& part : told) {
    ::v1::TopologyAwareQuantity& quantity = *list.Add();
    quantity.set_resource_value(part.amount);
    quantity.set_node(part.node);
    quantity.set_topology_level(part.level == PlacedQuantity::Level::kSocket ? ::v1::SOCKET
                                                                             : ::v1::NUMA);
    quantity.set_name(part.name);
    quantity.set_type(part.type);
    quantity.mutable_annotations()->insert(part.annotations.begin(), part.annotations.end());
  }
}

::v1::TopologyAwareResource& ResourceOf(::v1::ContainerResources& container,
                                        const std::string& name) {
  for (::v1::TopologyAwareResource& resource : *container.mutable_resources()) {
    if (resource.resource_name() == name) {
      return resource;
    }
  }
  ::v1::TopologyAwareResource& added = *container.add_resources();
  added.set_resource_name(name);
  return added;
}

/// Plugins' reports take precedence over the record.
void Overlay(const PlacedByResource& told, ::v1::ContainerResources& container) {
  for (const auto& [name, placed] : told) {
    ::v1::TopologyAwareResource& message = ResourceOf(container, name);
    message.set_is_node_resource(placed.is_node_resource);
    message.set_is_scalar_resource(placed.is_scalar_resource);
    message.set_aggregated_quantity(placed.amount);
    message.set_original_aggregated_quantity(placed.admitted_amount);
    auto& quantities = *message.mutable_topology_aware_quantity_list();
    auto& admitted = *message.mutable_original_topology_aware_quantity_list();
    // Katalyst's plugins say so of a sidecar that runs on the CPUs of its main container.
    if (placed.amount == 0) {
      quantities.Clear();
    }
    if (placed.admitted_amount == 0) {
      admitted.Clear();
    }
    ReplaceQuantities(placed.by_place, quantities);
    ReplaceQuantities(placed.admitted_by_place, admitted);
  }
}

void FillContainer(const std::string& name, const ContainerRecord& record, const Machine& machine,
                   ::v1::ContainerResources& message) {
  message.set_name(name);
  CpuSet exclusive;
  for (const auto& [resource, allocation] : record.allocations) {
    const CpuSet own_cpus = ExclusiveCpus(allocation);
    exclusive |= own_cpus;
    if (IsMemory(resource)) {
      AddMemory(resource, allocation, message);
    }
    if (resource == kMemory) {
      AddHugepages(record, allocation, message);
    }
    const auto origin = record.origins.find(resource);
    const bool is_known = !allocation->amount_by_node.empty();
    AddTopologyAware(resource, allocation,
                     is_known ? allocation->amount_by_node : CountByNode(own_cpus, machine),
                     origin == record.origins.end() ? std::nullopt : origin->second.admitted,
                     message);
  }
  for (const int cpu : exclusive) {
    message.add_cpu_ids(cpu);
  }
}

struct ListedContainer {
  const std::string* name;
  const ContainerRecord* record;
};

/// In kubelet's order: sidecars that are init containers, then app containers, in the order of the
/// spec. Source: Kubernetes 1.36, podresources server v1.
std::vector<ListedContainer> ListedContainers(const PodRecord& pod) {
  std::vector<ListedContainer> listed;
  for (const auto& [name, record] : pod.containers) {
    if (record->type == ContainerType::kSidecar || record->type == ContainerType::kMain) {
      listed.push_back({&name.str(), record.get()});
    }
  }
  std::stable_sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) {
    const auto key = [](const ListedContainer& container) {
      return std::make_tuple(!container.record->restartable_init, container.record->index);
    };
    return key(a) < key(b);
  });
  return listed;
}

void AddOffered(const std::map<int, double>& amounts, const std::vector<PlacedQuantity>& places,
                TopologyAwareQuantities& list) {
  for (const auto& [node, amount] : amounts) {
    ::v1::TopologyAwareQuantity& quantity = *list.Add();
    quantity.set_node(static_cast<uint64_t>(node));
    quantity.set_resource_value(amount);
    quantity.set_topology_level(::v1::NUMA);
  }
  ReplaceQuantities(places, list);
}

CpuSet AllocatableCpus(const AllocatableResource& resource, const Machine& machine) {
  const bool nothing_reserved =
      resource.allocatable == static_cast<double>(machine.cpu_set().Count());
  return (resource.allocatable_cpus.Empty() && nothing_reserved ? machine.cpu_set()
                                                                : resource.allocatable_cpus) -
         machine.OfflineNow();
}

using TakePod = std::function<void(::v1::PodResources& pod)>;

/// What ListAnswer has, one pod at a time.
void ForEachListedPod(const NodeState& state, const Machine& machine, const KubeletView& kubelet,
                      const TakePod& take) {
  state.ForEachPod([&](const PodRecord& pod) {
    ::v1::PodResources message;
    FillPod(pod, machine, kubelet, nullptr, message);
    take(message);
  });
  ForEachKubeletsOwnPod(state, kubelet, take);
}

}  // namespace

void FillPod(const PodRecord& pod, const Machine& machine, const KubeletView& kubelet,
             const PodPlacements* placements, ::v1::PodResources& message) {
  message.set_name(pod.meta.name);
  message.set_namespace_(pod.meta.pod_namespace);
  message.set_pod_role(pod.meta.role);
  message.set_pod_type(pod.meta.type);
  message.mutable_labels()->insert(pod.meta.labels.begin(), pod.meta.labels.end());
  message.mutable_annotations()->insert(pod.meta.annotations.begin(), pod.meta.annotations.end());
  for (const ListedContainer& container : ListedContainers(pod)) {
    ::v1::ContainerResources& filled = *message.add_containers();
    FillContainer(*container.name, *container.record, machine, filled);
    if (placements != nullptr && placements->contains(*container.name)) {
      Overlay(placements->at(*container.name), filled);
    }
  }
  ::v1::PodResources known;
  if (kubelet.FindPod(pod.meta.pod_namespace, pod.meta.name, known)) {
    AddKubeletPod(known, message);
  }
}

void KeepAnnotations(const std::set<std::string>& told, ::v1::PodResources& pod) {
  auto& annotations = *pod.mutable_annotations();
  for (auto annotation = annotations.begin(); annotation != annotations.end();) {
    annotation =
        told.contains(annotation->first) ? std::next(annotation) : annotations.erase(annotation);
  }
}

void ForEachKubeletsOwnPod(const NodeState& state, const KubeletView& kubelet,
                           const std::function<void(::v1::PodResources& pod)>& take) {
  kubelet.ForEachPod(
      [&](const std::string& pod_namespace, const std::string& name) {
        return state.FindPodByName(pod_namespace, name) == nullptr;
      },
      take);
}

::v1::ListPodResourcesResponse ListAnswer(const NodeState& state, const Machine& machine,
                                          const KubeletView& kubelet) {
  ::v1::ListPodResourcesResponse response;
  ForEachListedPod(state, machine, kubelet,
                   [&](::v1::PodResources& pod) { response.add_pod_resources()->Swap(&pod); });
  return response;
}

std::string ListBytesV1Alpha1(const NodeState& state, const KubeletView& kubelet) {
  std::string bytes;
  ForEachListedPod(state, Machine(), kubelet, [&](::v1::PodResources& pod) {
    ::v1alpha1::ListPodResourcesResponse one;
    ::v1alpha1::PodResources& message = *one.add_pod_resources();
    message.set_name(pod.name());
    message.set_namespace_(pod.namespace_());
    for (::v1::ContainerResources& container : *pod.mutable_containers()) {
      ::v1alpha1::ContainerResources& old = *message.add_containers();
      old.set_name(container.name());
      for (::v1::ContainerDevices& device : *container.mutable_devices()) {
        ::v1alpha1::ContainerDevices& old_device = *old.add_devices();
        old_device.set_resource_name(device.resource_name());
        old_device.mutable_device_ids()->Swap(device.mutable_device_ids());
      }
    }
    one.AppendToString(&bytes);
  });
  return bytes;
}

StatusOr<::v1::GetPodResourcesResponse> GetAnswer(const NodeState& state, const Machine& machine,
                                                  const KubeletView& kubelet,
                                                  const ::v1::GetPodResourcesRequest& request,
                                                  const PodPlacements* placements) {
  ::v1::GetPodResourcesResponse response;
  const auto* own = state.FindPodByName(request.pod_namespace(), request.pod_name());
  ::v1::PodResources& pod = *response.mutable_pod_resources();
  if (own != nullptr) {
    FillPod(*own, machine, kubelet, placements, pod);
  } else if (!kubelet.FindPod(request.pod_namespace(), request.pod_name(), pod)) {
    return Errorf(StatusCode::kUnknown, "pod {} in namespace {} not found", request.pod_name(),
                  request.pod_namespace());
  }
  return response;
}

::v1::AllocatableResourcesResponse AllocatableAnswer(const AllocatableByResource& allocatable,
                                                     const Machine& machine,
                                                     const KubeletView& kubelet) {
  ::v1::AllocatableResourcesResponse response;
  for (const auto& [name, resource] : allocatable) {
    if (name == kCpu) {
      for (const int cpu : AllocatableCpus(resource, machine)) {
        response.add_cpu_ids(cpu);
      }
    }
    if (IsMemory(name)) {
      for (const auto& [node, bytes] : resource.allocatable_by_node) {
        AddMemoryBlock(name, BytesOf(bytes), {node}, *response.mutable_memory());
      }
    }
    ::v1::AllocatableTopologyAwareResource& message = *response.add_resources();
    message.set_resource_name(name);
    message.set_is_node_resource(resource.is_node_resource);
    message.set_is_scalar_resource(resource.is_scalar_resource);
    message.set_aggregated_allocatable_quantity(resource.allocatable);
    message.set_aggregated_capacity_quantity(resource.capacity);
    AddOffered(resource.allocatable_by_node, resource.allocatable_places,
               *message.mutable_topology_aware_allocatable_quantity_list());
    AddOffered(resource.capacity_by_node, resource.capacity_places,
               *message.mutable_topology_aware_capacity_quantity_list());
  }
  kubelet.AddAllocatable(response);
  return response;
}

}  // namespace qrm::manager
