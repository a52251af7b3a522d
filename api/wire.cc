// Converts messages of the resource plugin API.
#include "api/wire.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"

namespace qrm::wire {
namespace {

template <typename Message>
StringMap MapFrom(const Message& message) {
  return {message.begin(), message.end()};
}

template <typename Response>
void CopyIdentity(const ContainerRequest& request, Response& response) {
  response.set_pod_uid(request.key.pod_uid);
  response.set_pod_namespace(request.pod_namespace);
  response.set_pod_name(request.pod_name);
  response.set_container_name(request.key.container);
  response.set_container_type(static_cast<pb::ContainerType>(request.type));
  response.set_container_index(request.index);
  response.set_pod_role(request.pod_role);
  response.set_pod_type(request.pod_type);
  response.set_resource_name(request.resource);
  response.mutable_labels()->insert(request.labels.begin(), request.labels.end());
  response.mutable_annotations()->insert(request.annotations.begin(), request.annotations.end());
  response.set_native_qos_class(request.native_qos_class);
}

/// An answer about another container must not be applied to this one; empty fields count as not
/// repeated.
template <typename Response>
Status CheckIdentity(const Response& response, const ContainerRequest& request) {
  const auto differs = [](const std::string& got, const std::string& want) {
    return !got.empty() && got != want;
  };
  if (differs(response.pod_uid(), request.key.pod_uid) ||
      differs(response.container_name(), request.key.container)) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot use the answer: it is for container {} of pod {}, asked was container {} of pod {}",
        response.container_name(), response.pod_uid(), request.key.container, request.key.pod_uid);
  }
  if (differs(response.resource_name(), request.resource)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot use the answer: it is for resource {}, asked was {}",
                  response.resource_name(), request.resource);
  }
  return OkStatus();
}

Status CheckQuantity(double quantity, std::string_view what) {
  if (!std::isfinite(quantity) || quantity < 0) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot use {} {}: it must be a finite number of 0 or more", what, quantity);
  }
  return OkStatus();
}

StatusOr<std::vector<TopologyHint>> HintsFromList(const pb::ListOfTopologyHints& list) {
  std::vector<TopologyHint> hints;
  hints.reserve(static_cast<std::size_t>(list.hints_size()));
  for (const pb::TopologyHint& message : list.hints()) {
    QRM_ASSIGN_OR_RETURN(TopologyHint hint, FromWire(message));
    hints.push_back(std::move(hint));
  }
  return hints;
}

template <typename Hints>
void FillList(const Hints& hints, pb::ListOfTopologyHints& list) {
  for (const TopologyHint& hint : hints) {
    *list.add_hints() = ToWire(hint);
  }
}

/// The runtime takes a relative path for one below a directory of its own.
Status CheckPaths(std::string_view what, const std::string& host, const std::string& container) {
  for (const std::string& path : {host, container}) {
    if (!path.starts_with('/')) {
      return Errorf(StatusCode::kInvalidArgument,
                    "{} of \"{}\" at \"{}\": the path \"{}\" is not absolute; begin it with /",
                    what, Quoted(host), Quoted(container), Quoted(path));
    }
  }
  return OkStatus();
}

/// Values of the two cpuset knobs must be lists; every other knob is checked where it is applied.
Status CheckKnob(const ResourceAllocation& allocation) {
  QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.may_share).status());
  QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.shares).status());
  QRM_RETURN_IF_ERROR(CpuSet::Parse(allocation.grown).status());
  if (allocation.oci_property == kCpusetCpus) {
    return CpuSet::Parse(allocation.value).status();
  }
  if (allocation.oci_property == kCpusetMems) {
    return NumaMask::Parse(allocation.value).status();
  }
  return OkStatus();
}

StatusOr<AllocationByResource> AllocationsFromMessage(const pb::ResourceAllocation& message) {
  AllocationByResource allocations;
  for (const auto& [resource, info] : message.resource_allocation()) {
    StatusOr<ResourceAllocation> allocation = FromWire(info);
    if (!allocation.ok()) {
      return Annotate(allocation.status(), fmt::format("resource {}", resource));
    }
    allocations.emplace(resource, *std::move(allocation));
  }
  return allocations;
}

void FillAllocations(const AllocationByResource& allocations, pb::ResourceAllocation& message) {
  for (const auto& [resource, allocation] : allocations) {
    (*message.mutable_resource_allocation())[resource] = ToWire(allocation);
  }
}

void AddQuantities(const std::map<int, double>& by_node, PlacedQuantities& list) {
  for (const auto& [node, amount] : by_node) {
    pb::TopologyAwareQuantity& quantity = *list.Add();
    quantity.set_node(static_cast<uint64_t>(node));
    quantity.set_resource_value(amount);
    quantity.set_topology_level(pb::NUMA);
  }
}

bool IsPlain(const PlacedQuantity& quantity) {
  return quantity.level == PlacedQuantity::Level::kNuma && quantity.name.empty() &&
         quantity.type.empty() && quantity.annotations.empty();
}

/// Fills `by_node` with the amounts of NUMA nodes, and `places` if more than these is in the list.
Status ReadQuantities(const PlacedQuantities& list, std::map<int, double>& by_node,
                      std::vector<PlacedQuantity>& places) {
  QRM_ASSIGN_OR_RETURN(places, PlacesFrom(list));
  for (const PlacedQuantity& quantity : places) {
    if (quantity.level != PlacedQuantity::Level::kNuma) {
      continue;
    }
    if (quantity.node >= IdSet::kMaxIds) {
      return Errorf(StatusCode::kInvalidArgument, "cannot use NUMA node {}: ids end at {}",
                    quantity.node, IdSet::kMaxIds - 1);
    }
    by_node[static_cast<int>(quantity.node)] += quantity.amount;
  }
  if (std::all_of(places.begin(), places.end(), IsPlain)) {
    places.clear();
  }
  return OkStatus();
}

}  // namespace

pb::ResourceRequest ToWire(const ContainerRequest& request) {
  pb::ResourceRequest message;
  CopyIdentity(request, message);
  for (const auto& [name, amount] : request.requests) {
    auto& entries = IsHugepages(name) && request.requests.size() > 1
                        ? *message.mutable_hugepage_requests()
                        : *message.mutable_resource_requests();
    entries[name] = amount;
  }
  message.set_runtime_class(request.runtime_class);
  if (request.limit.has_value()) {
    message.set_resource_limit(*request.limit);
  }
  message.set_for_whole_pod(request.for_whole_pod);
  if (request.scale != 1) {
    message.set_resource_scale(request.scale);
  }
  if (request.hint.has_value()) {
    *message.mutable_hint() = ToWire(*request.hint);
  }
  return message;
}

StatusOr<ContainerRequest> FromWire(const pb::ResourceRequest& message) {
  if (message.pod_uid().empty() || message.container_name().empty() ||
      message.resource_name().empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read the request: pod_uid \"{}\", container_name \"{}\" and "
                  "resource_name \"{}\" must all be set",
                  message.pod_uid(), message.container_name(), message.resource_name());
  }
  if (!pb::ContainerType_IsValid(message.container_type())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read the request: container type {} is unknown",
                  static_cast<int>(message.container_type()));
  }
  ContainerRequest request;
  request.key = {message.pod_uid(), message.container_name()};
  request.pod_namespace = message.pod_namespace();
  request.pod_name = message.pod_name();
  request.type = static_cast<ContainerType>(message.container_type());
  request.index = message.container_index();
  request.pod_role = message.pod_role();
  request.pod_type = message.pod_type();
  request.resource = message.resource_name();
  request.labels = MapFrom(message.labels());
  request.annotations = MapFrom(message.annotations());
  request.native_qos_class = message.native_qos_class();
  request.runtime_class = message.runtime_class();
  for (const auto* entries : {&message.resource_requests(), &message.hugepage_requests()}) {
    for (const auto& [name, amount] : *entries) {
      QRM_RETURN_IF_ERROR(CheckQuantity(amount, "request of " + name));
      request.requests.Edit().emplace(name, amount);
    }
  }
  if (message.has_resource_limit()) {
    QRM_RETURN_IF_ERROR(CheckQuantity(message.resource_limit(), "limit"));
    request.limit = message.resource_limit();
  }
  request.for_whole_pod = message.for_whole_pod();
  if (message.has_resource_scale()) {
    QRM_RETURN_IF_ERROR(CheckQuantity(message.resource_scale(), "scale"));
    request.scale = message.resource_scale();
  }
  if (message.has_hint()) {
    QRM_ASSIGN_OR_RETURN(request.hint, FromWire(message.hint()));
  }
  return request;
}

pb::TopologyHint ToWire(const TopologyHint& hint) {
  pb::TopologyHint message;
  for (const int node : hint.nodes) {
    message.add_nodes(static_cast<uint64_t>(node));
  }
  message.set_preferred(hint.preferred);
  return message;
}

StatusOr<TopologyHint> FromWire(const pb::TopologyHint& message) {
  TopologyHint hint;
  hint.preferred = message.preferred();
  for (const uint64_t node : message.nodes()) {
    if (node >= IdSet::kMaxIds) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot use a hint for NUMA node {}: ids end at {}", node, IdSet::kMaxIds - 1);
    }
    hint.nodes.Add(static_cast<int>(node));
  }
  return hint;
}

pb::ResourceHintsResponse HintsResponse(const ContainerRequest& request, const HintList& hints) {
  pb::ResourceHintsResponse response;
  CopyIdentity(request, response);
  pb::HintsEntry& entry = *response.add_resource_hints();
  entry.set_key(request.resource);
  if (!hints.IsNoPreference()) {
    FillList(hints.hints(), *entry.mutable_value());
  }
  return response;
}

StatusOr<HintList> HintsFrom(const pb::ResourceHintsResponse& response,
                             const ContainerRequest& request) {
  QRM_RETURN_IF_ERROR(CheckIdentity(response, request));
  HintList hints = HintList::NoPreference();
  for (const pb::HintsEntry& entry :
       response.resource_hints()) {  // a repeated key: the last wins, as in a map
    if (entry.key() == request.resource) {
      hints = HintList::NoPreference();
      if (entry.has_value()) {
        QRM_ASSIGN_OR_RETURN(hints, HintsFromList(entry.value()));
      }
    }
  }
  return hints;
}

pb::ResourceAllocationInfo ToWire(const ResourceAllocation& allocation) {
  pb::ResourceAllocationInfo message;
  message.set_oci_property_name(allocation.oci_property);
  message.set_is_node_resource(allocation.is_node_resource);
  message.set_is_scalar_resource(allocation.is_scalar_resource);
  message.set_allocated_quantity(allocation.quantity);
  message.set_allocation_result(allocation.value);
  message.mutable_envs()->insert(allocation.envs.begin(), allocation.envs.end());
  message.mutable_annotations()->insert(allocation.annotations.begin(),
                                        allocation.annotations.end());
  if (allocation.hints.has_value()) {
    FillList(*allocation.hints, *message.mutable_resource_hints());
  }
  message.mutable_topology_assignments()->insert(allocation.amount_by_node.begin(),
                                                 allocation.amount_by_node.end());
  for (const Mount& mount : allocation.mounts) {
    pb::Mount& added = *message.add_mounts();
    added.set_container_path(mount.container_path);
    added.set_host_path(mount.host_path);
    added.set_read_only(mount.read_only);
  }
  for (const DeviceSpec& device : allocation.devices) {
    pb::DeviceSpec& added = *message.add_devices();
    added.set_container_path(device.container_path);
    added.set_host_path(device.host_path);
    added.set_permissions(device.permissions);
  }
  message.set_exclusive(allocation.exclusive);
  message.set_decided_by(allocation.decided_by);
  message.set_may_share(allocation.may_share);
  message.set_shares(allocation.shares);
  message.set_shares_of(allocation.shares_of);
  message.set_pool(allocation.pool);
  message.set_grown(allocation.grown);
  message.set_lacks(allocation.lacks);
  message.mutable_class_defaults()->insert(allocation.class_defaults.begin(),
                                           allocation.class_defaults.end());
  return message;
}

StatusOr<ResourceAllocation> FromWire(const pb::ResourceAllocationInfo& message) {
  ResourceAllocation allocation;
  allocation.oci_property = message.oci_property_name();
  allocation.value = message.allocation_result();
  allocation.is_node_resource = message.is_node_resource();
  allocation.is_scalar_resource = message.is_scalar_resource();
  allocation.quantity = message.allocated_quantity();
  allocation.envs = MapFrom(message.envs());
  allocation.annotations = MapFrom(message.annotations());
  if (message.has_resource_hints()) {
    QRM_ASSIGN_OR_RETURN(allocation.hints, HintsFromList(message.resource_hints()));
  }
  allocation.amount_by_node = {message.topology_assignments().begin(),
                               message.topology_assignments().end()};
  for (const pb::Mount& mount : message.mounts()) {
    allocation.mounts.push_back({mount.container_path(), mount.host_path(), mount.read_only()});
  }
  for (const pb::DeviceSpec& device : message.devices()) {
    allocation.devices.push_back(
        {device.container_path(), device.host_path(), device.permissions()});
  }
  allocation.exclusive = message.exclusive();
  allocation.decided_by = Cut(message.decided_by(), kMostForeignBytes);
  allocation.may_share = message.may_share();
  allocation.shares = message.shares();
  allocation.shares_of = message.shares_of();
  allocation.pool = Cut(message.pool(), kMostForeignBytes);
  allocation.grown = message.grown();
  allocation.lacks = message.lacks();
  allocation.class_defaults = MapFrom(message.class_defaults());
  QRM_RETURN_IF_ERROR(Check(allocation));
  return allocation;
}

Status Check(const ResourceAllocation& allocation) {
  QRM_RETURN_IF_ERROR(CheckQuantity(allocation.quantity, "allocated quantity"));
  for (const Mount& mount : allocation.mounts) {
    QRM_RETURN_IF_ERROR(CheckPaths("mount", mount.host_path, mount.container_path));
  }
  for (const DeviceSpec& device : allocation.devices) {
    QRM_RETURN_IF_ERROR(CheckPaths("device", device.host_path, device.container_path));
  }
  QRM_RETURN_IF_ERROR(CheckQuantity(allocation.lacks, "lacking quantity"));
  return CheckKnob(allocation);
}

pb::ResourceAllocationResponse AllocationResponse(const ContainerRequest& request,
                                                  const AllocationByResource& allocations) {
  pb::ResourceAllocationResponse response;
  CopyIdentity(request, response);
  if (!allocations.empty()) {
    FillAllocations(allocations, *response.mutable_allocation_result());
  }
  return response;
}

StatusOr<AllocationByResource> AllocationsFrom(const pb::ResourceAllocationResponse& response,
                                               const ContainerRequest& request) {
  QRM_RETURN_IF_ERROR(CheckIdentity(response, request));
  return AllocationsFromMessage(response.allocation_result());
}

pb::GetResourcesAllocationResponse ToWire(const AllocationByContainer& allocations) {
  pb::GetResourcesAllocationResponse message;
  for (const auto& [key, by_resource] : allocations) {
    pb::ContainerResources& pod = (*message.mutable_pod_resources())[key.pod_uid];
    FillAllocations(by_resource, (*pod.mutable_container_resources())[key.container]);
  }
  return message;
}

StatusOr<AllocationByContainer> FromWire(const pb::GetResourcesAllocationResponse& message) {
  AllocationByContainer allocations;
  for (const auto& [uid, pod] : message.pod_resources()) {
    for (const auto& [container, resources] : pod.container_resources()) {
      StatusOr<AllocationByResource> by_resource = AllocationsFromMessage(resources);
      if (!by_resource.ok()) {
        return Annotate(by_resource.status(),
                        fmt::format("container {} of pod {}", container, uid));
      }
      allocations.emplace(ContainerKey{uid, container}, *std::move(by_resource));
    }
  }
  return allocations;
}

pb::ResourcePluginOptions ToWire(const PluginOptions& options) {
  pb::ResourcePluginOptions message;
  message.set_pre_start_required(options.pre_start_required);
  message.set_with_topology_alignment(options.with_topology_alignment);
  message.set_need_reconcile(options.need_reconcile);
  message.set_says_exclusive(options.says_exclusive);
  return message;
}

PluginOptions FromWire(const pb::ResourcePluginOptions& message) {
  return {.pre_start_required = message.pre_start_required(),
          .with_topology_alignment = message.with_topology_alignment(),
          .need_reconcile = message.need_reconcile(),
          .says_exclusive = message.says_exclusive()};
}

void FillPlaces(const std::vector<PlacedQuantity>& places, PlacedQuantities& list) {
  for (const PlacedQuantity& place : places) {
    pb::TopologyAwareQuantity& message = *list.Add();
    message.set_resource_value(place.amount);
    message.set_node(place.node);
    message.set_topology_level(place.level == PlacedQuantity::Level::kSocket ? pb::SOCKET
                                                                             : pb::NUMA);
    message.set_name(place.name);
    message.set_type(place.type);
    message.mutable_annotations()->insert(place.annotations.begin(), place.annotations.end());
  }
}

StatusOr<std::vector<PlacedQuantity>> PlacesFrom(const PlacedQuantities& list) {
  std::vector<PlacedQuantity> places;
  for (const pb::TopologyAwareQuantity& message : list) {
    QRM_RETURN_IF_ERROR(CheckQuantity(message.resource_value(), "quantity"));
    places.push_back({.amount = message.resource_value(),
                      .node = message.node(),
                      .level = message.topology_level() == pb::SOCKET
                                   ? PlacedQuantity::Level::kSocket
                                   : PlacedQuantity::Level::kNuma,
                      .name = message.name(),
                      .type = message.type(),
                      .annotations = MapFrom(message.annotations())});
  }
  return places;
}

pb::AllocatableTopologyAwareResource ToWire(const AllocatableResource& resource) {
  pb::AllocatableTopologyAwareResource message;
  message.set_is_node_resource(resource.is_node_resource);
  message.set_is_scalar_resource(resource.is_scalar_resource);
  message.set_aggregated_allocatable_quantity(resource.allocatable);
  message.set_aggregated_capacity_quantity(resource.capacity);
  auto& allocatable = *message.mutable_topology_aware_allocatable_quantity_list();
  auto& capacity = *message.mutable_topology_aware_capacity_quantity_list();
  FillPlaces(resource.allocatable_places, allocatable);
  FillPlaces(resource.capacity_places, capacity);
  if (allocatable.empty()) {
    AddQuantities(resource.allocatable_by_node, allocatable);
  }
  if (capacity.empty()) {
    AddQuantities(resource.capacity_by_node, capacity);
  }
  message.set_allocatable_cpus(ToString(resource.allocatable_cpus));
  return message;
}

StatusOr<AllocatableResource> FromWire(const pb::AllocatableTopologyAwareResource& message) {
  AllocatableResource resource;
  resource.is_node_resource = message.is_node_resource();
  resource.is_scalar_resource = message.is_scalar_resource();
  resource.allocatable = message.aggregated_allocatable_quantity();
  resource.capacity = message.aggregated_capacity_quantity();
  QRM_RETURN_IF_ERROR(CheckQuantity(resource.allocatable, "allocatable quantity"));
  QRM_RETURN_IF_ERROR(CheckQuantity(resource.capacity, "capacity"));
  QRM_RETURN_IF_ERROR(ReadQuantities(message.topology_aware_allocatable_quantity_list(),
                                     resource.allocatable_by_node, resource.allocatable_places));
  QRM_RETURN_IF_ERROR(ReadQuantities(message.topology_aware_capacity_quantity_list(),
                                     resource.capacity_by_node, resource.capacity_places));
  QRM_ASSIGN_OR_RETURN(resource.allocatable_cpus, CpuSet::Parse(message.allocatable_cpus()));
  return resource;
}

}  // namespace qrm::wire
