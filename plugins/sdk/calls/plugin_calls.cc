// Defines the calls of the resource plugin API: their messages, service and checks.
#include "plugins/sdk/calls/plugin_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include "api/base/errorf.h"
#include "api/message_fields.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/call_codec.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::calls {
namespace {

namespace pb = ::resourceplugin::v1alpha1;
using sdk::PluginDriver;

Status CheckServes(const PluginDriver& driver, const ContainerRequest& request) {
  if (request.resource != driver.resource()) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot serve a request for {}: this plugin serves {}; call the plugin that registered {}",
        request.resource, driver.resource(), request.resource);
  }
  return OkStatus();
}

std::size_t CountHints(const pb::ResourceHintsResponse& response) {
  std::size_t count = 0;
  for (const pb::HintsEntry& entry : response.resource_hints()) {
    count += static_cast<std::size_t>(entry.value().hints_size());
  }
  return count;
}

// --- a container's amounts by NUMA node

/// The quantity; where it is not counted, as of a shared NIC, the sum of `places`.
double AmountOf(const ResourceAllocation& allocation, const std::vector<PlacedQuantity>& places) {
  return std::accumulate(
      places.begin(), allocation.quantity > 0 ? places.begin() : places.end(), allocation.quantity,
      [](double sum, const PlacedQuantity& place) { return sum + place.amount; });
}

/// The container's current allocation, and its allocation at admission.
StatusOr<PlacedResource> PlacementOf(const PluginDriver& driver, const ContainerKey& key,
                                     const sdk::Grant& grant) {
  const ResourceAllocation& now = grant.allocation;
  const ResourceAllocation& admitted = grant.admitted != nullptr ? *grant.admitted : now;
  return driver.Ask("PlacesOf", [&](const sdk::ResourcePlugin& plugin) -> StatusOr<PlacedResource> {
    PlacedResource placed{.is_node_resource = now.is_node_resource,
                          .is_scalar_resource = now.is_scalar_resource,
                          .by_place = plugin.PlacesOf(key, now),
                          .admitted_by_place = plugin.PlacesOf(key, admitted)};
    placed.amount = AmountOf(now, placed.by_place);
    placed.admitted_amount = AmountOf(admitted, placed.admitted_by_place);
    return placed;
  });
}

void FillPlaced(const PlacedResource& resource, pb::TopologyAwareResource& message) {
  message.set_is_node_resource(resource.is_node_resource);
  message.set_is_scalar_resource(resource.is_scalar_resource);
  message.set_aggregated_quantity(resource.amount);
  message.set_original_aggregated_quantity(resource.admitted_amount);
  wire::FillPlaces(resource.by_place, *message.mutable_topology_aware_quantity_list());
  wire::FillPlaces(resource.admitted_by_place,
                   *message.mutable_original_topology_aware_quantity_list());
}

StatusOr<PlacedResource> PlacedFrom(const pb::TopologyAwareResource& message) {
  PlacedResource resource{.is_node_resource = message.is_node_resource(),
                          .is_scalar_resource = message.is_scalar_resource(),
                          .amount = message.aggregated_quantity(),
                          .admitted_amount = message.original_aggregated_quantity()};
  QRM_ASSIGN_OR_RETURN(resource.by_place, wire::PlacesFrom(message.topology_aware_quantity_list()));
  QRM_ASSIGN_OR_RETURN(resource.admitted_by_place,
                       wire::PlacesFrom(message.original_topology_aware_quantity_list()));
  return resource;
}

}  // namespace

template <>
struct Codec<GetOptions> {
  using Message = pb::Empty;
  using Response = pb::ResourcePluginOptions;

  static StatusOr<PluginOptions> Serve(const PluginDriver& driver) { return driver.options(); }
  static Response AnswerToWire(const PluginOptions& options) { return wire::ToWire(options); }
  static StatusOr<PluginOptions> AnswerFromWire(const Response& response) {
    return wire::FromWire(response);
  }
};
template class CallTo<GetOptions>;

template <>
struct Codec<GetTopologyHints> {
  using Message = pb::ResourceRequest;
  using Response = pb::ResourceHintsResponse;

  static Message ToWire(const ContainerRequest& request) { return wire::ToWire(request); }
  static StatusOr<ContainerRequest> FromWire(const Message& message) {
    return wire::FromWire(message);
  }
  static Response AnswerToWire(const ContainerRequest& request, const HintList& hints) {
    return wire::HintsResponse(request, hints);
  }
  static StatusOr<HintList> AnswerFromWire(const Response& response,
                                           const ContainerRequest& request) {
    QRM_RETURN_IF_ERROR(CheckHintCount(CountHints(response)));
    return wire::HintsFrom(response, request);
  }
  static Status Check(const HintList& hints, const NumaMask& machine_nodes) {
    return CheckHints(hints.hints(), machine_nodes);
  }
};
template <>
StatusOr<HintList> CallTo<GetTopologyHints>::Serve(PluginDriver& driver,
                                                   const ContainerRequest& request) {
  QRM_RETURN_IF_ERROR(CheckServes(driver, request));
  return driver.Hints(request);
}
template class CallTo<GetTopologyHints>;

template <>
struct Codec<Allocate> {
  using Message = pb::ResourceRequest;
  using Response = pb::ResourceAllocationResponse;

  static Message ToWire(const ContainerRequest& request) { return wire::ToWire(request); }
  static StatusOr<ContainerRequest> FromWire(const Message& message) {
    return wire::FromWire(message);
  }
  static Response AnswerToWire(const ContainerRequest& request,
                               const AllocationByResource& allocations) {
    return wire::AllocationResponse(request, allocations);
  }
  static StatusOr<AllocationByResource> AnswerFromWire(const Response& response,
                                                       const ContainerRequest& request) {
    return wire::AllocationsFrom(response, request);
  }
  static Status Check(const AllocationByResource& allocations, const NumaMask& machine_nodes) {
    return CheckAllocations(allocations, machine_nodes);
  }
};
template <>
StatusOr<AllocationByResource> CallTo<Allocate>::Serve(PluginDriver& driver,
                                                       const ContainerRequest& request) {
  QRM_RETURN_IF_ERROR(CheckServes(driver, request));
  QRM_ASSIGN_OR_RETURN(Shared<ResourceAllocation> allocation, driver.Allocate(request));
  AllocationByResource allocations;
  allocations.emplace(request.resource, std::move(allocation));
  return allocations;
}
template class CallTo<Allocate>;

template <>
struct Codec<RemovePod> {
  using Response = pb::RemovePodResponse;
  using Message = pb::RemovePodRequest;

  static Message ToWire(const std::string& pod_uid) {
    Message message;
    message.set_pod_uid(pod_uid);
    return message;
  }
  static StatusOr<std::string> FromWire(const Message& message) { return message.pod_uid(); }
  static Status Serve(PluginDriver& driver, const std::string& pod_uid) {
    if (pod_uid.empty()) {
      return Errorf(StatusCode::kInvalidArgument, "cannot remove a pod: pod_uid is empty; set it");
    }
    return driver.RemovePod(pod_uid);
  }
};
template class CallTo<RemovePod>;

template <>
struct Codec<GetResourcesAllocation> {
  using Message = pb::GetResourcesAllocationRequest;
  using Response = pb::GetResourcesAllocationResponse;

  static StatusOr<HeldAllocations> Serve(PluginDriver& driver) {
    QRM_RETURN_IF_ERROR(driver.Reconcile());
    return driver.Held();
  }
  static Response AnswerToWire(const HeldAllocations& held) {
    Response response;
    for (const auto& [key, resource, allocation] : *held) {
      pb::ContainerResources& pod = (*response.mutable_pod_resources())[key.pod_uid];
      pb::ResourceAllocation& container = (*pod.mutable_container_resources())[key.container];
      (*container.mutable_resource_allocation())[resource] = wire::ToWire(allocation);
    }
    return response;
  }
};

namespace {

/// Collects an answer to GetResourcesAllocation that is read in parts.
class HeldReader {
 public:
  /// Errors: kInvalidArgument for an allocation that cannot be, and for too many.
  Status Add(const pb::GetResourcesAllocationResponse& part) {
    for (const auto& [uid, pod] : part.pod_resources()) {
      const SharedText pod_uid(uid);
      for (const auto& [container, resources] : pod.container_resources()) {
        QRM_RETURN_IF_ERROR(AddContainer({pod_uid, Shared(container)}, resources));
      }
    }
    return OkStatus();
  }
  /// Errors: kInvalidArgument for a container that has come twice.
  StatusOr<HeldAllocations> Take() {
    const auto name = [](const HeldAllocation& held) { return std::tie(held.key, held.resource); };
    std::ranges::sort(
        list_, [&](const HeldAllocation& a, const HeldAllocation& b) { return name(a) < name(b); });
    const auto twice = std::adjacent_find(
        list_.begin(), list_.end(),
        [&](const HeldAllocation& a, const HeldAllocation& b) { return name(a) == name(b); });
    if (twice != list_.end()) {
      return Errorf(StatusCode::kInvalidArgument, "container {} of pod {} is in it twice",
                    twice->key.container, twice->key.pod_uid);
    }
    return std::make_shared<const HeldList>(std::move(list_));
  }

 private:
  SharedText Shared(const std::string& name) {
    return names_.try_emplace(name, name).first->second;
  }

  Status AddContainer(const ContainerKey& key, const pb::ResourceAllocation& resources) {
    for (const auto& [resource, info] : resources.resource_allocation()) {
      if (list_.size() == kMostHeld) {
        return Errorf(StatusCode::kInvalidArgument, "it has more than {} allocations", kMostHeld);
      }
      StatusOr<ResourceAllocation> allocation = wire::FromWire(info);
      if (!allocation.ok()) {
        return Annotate(allocation.status(), fmt::format("container {} of pod {}: resource {}",
                                                         key.container, key.pod_uid, resource));
      }
      list_.push_back({key, Shared(resource), *std::move(allocation)});
    }
    return OkStatus();
  }

  HeldList list_;
  std::map<std::string, SharedText> names_;  // of containers and resources; few distinct names
};

StatusOr<HeldAllocations> ReadHeld(std::string_view answer) {
  const auto parts = PartsOf(answer, kPartBytes);
  if (!parts.has_value()) {
    return Unreadable("its answer");
  }
  HeldReader reader;
  for (const std::string_view part : *parts) {
    google::protobuf::Arena arena;  // parsed, the answer takes several times its bytes
    auto& response =
        *google::protobuf::Arena::CreateMessage<pb::GetResourcesAllocationResponse>(&arena);
    if (!response.ParseFromArray(part.data(), static_cast<int>(part.size()))) {
      return Unreadable("its answer");
    }
    QRM_RETURN_IF_ERROR(reader.Add(response));
  }
  return reader.Take();
}

}  // namespace

template <>
void CallTo<GetResourcesAllocation>::Take(const Pieces& pieces, const NumaMask& /*machine_nodes*/) {
  End(ResultOf(ReadHeld(Joined(pieces))));
}
template class CallTo<GetResourcesAllocation>;

template <>
struct Codec<GetAllocatable> {
  using Message = pb::GetTopologyAwareAllocatableResourcesRequest;
  using Response = pb::GetTopologyAwareAllocatableResourcesResponse;

  static StatusOr<AllocatableByResource> Serve(const PluginDriver& driver) {
    return driver.Allocatable();
  }
  static Response AnswerToWire(const AllocatableByResource& resources) {
    Response response;
    for (const auto& [name, resource] : resources) {
      (*response.mutable_allocatable_resources())[name] = wire::ToWire(resource);
    }
    return response;
  }
  static StatusOr<AllocatableByResource> AnswerFromWire(const Response& response) {
    AllocatableByResource resources;
    for (const auto& [name, message] : response.allocatable_resources()) {
      StatusOr<AllocatableResource> resource = wire::FromWire(message);
      if (!resource.ok()) {
        return Annotate(resource.status(), "resource " + name);
      }
      resources.emplace(name, *std::move(resource));
    }
    return resources;
  }
};
template class CallTo<GetAllocatable>;

template <>
struct Codec<GetPlacement> {
  using Message = pb::GetTopologyAwareResourcesRequest;
  using Response = pb::GetTopologyAwareResourcesResponse;

  static Message ToWire(const ContainerKey& key) {
    Message message;
    message.set_pod_uid(key.pod_uid);
    message.set_container_name(key.container);
    return message;
  }
  static StatusOr<ContainerKey> FromWire(const Message& message) {
    return ContainerKey{message.pod_uid(), message.container_name()};
  }
  static StatusOr<ContainerPlacement> Serve(const PluginDriver& driver, const ContainerKey& key) {
    const auto known = driver.grants().find(key);
    if (known == driver.grants().end()) {
      return ContainerPlacement{};
    }
    const ContainerRequest& request = known->second.request;
    QRM_ASSIGN_OR_RETURN(PlacedResource placed, PlacementOf(driver, key, known->second));
    return ContainerPlacement{.pod_namespace = request.pod_namespace,
                              .pod_name = request.pod_name,
                              .resources = {{driver.resource(), std::move(placed)}}};
  }
  static Response AnswerToWire(const ContainerKey& key, const ContainerPlacement& placement) {
    Response response;
    response.set_pod_uid(key.pod_uid);
    response.set_pod_namespace(placement.pod_namespace);
    response.set_pod_name(placement.pod_name);
    pb::ContainerTopologyAwareResources& container =
        *response.mutable_container_topology_aware_resources();
    container.set_container_name(key.container);
    for (const auto& [name, resource] : placement.resources) {
      FillPlaced(resource, (*container.mutable_allocated_resources())[name]);
    }
    return response;
  }
  static StatusOr<ContainerPlacement> AnswerFromWire(const Response& response) {
    ContainerPlacement placement{.pod_namespace = response.pod_namespace(),
                                 .pod_name = response.pod_name()};
    for (const auto& [name, message] :
         response.container_topology_aware_resources().allocated_resources()) {
      QRM_ASSIGN_OR_RETURN(PlacedResource resource, PlacedFrom(message));
      placement.resources.emplace(name, std::move(resource));
    }
    return placement;
  }
};
template class CallTo<GetPlacement>;

template <>
struct Codec<PreStartContainer> {
  using Response = pb::PreStartContainerResponse;
  using Message = pb::PreStartContainerRequest;

  static Message ToWire(const PreStartContainer::Request& request) {
    Message message;
    message.set_pod_uid(request.key.pod_uid);
    message.set_pod_namespace(request.pod_namespace);
    message.set_pod_name(request.pod_name);
    message.set_container_name(request.key.container);
    return message;
  }
  static StatusOr<PreStartContainer::Request> FromWire(const Message& message) {
    return PreStartContainer::Request{.key = {message.pod_uid(), message.container_name()},
                                      .pod_namespace = message.pod_namespace(),
                                      .pod_name = message.pod_name()};
  }
  static Status Serve(const PluginDriver& driver, const PreStartContainer::Request& request) {
    return driver.Ask("PreStart",
                      [&](sdk::ResourcePlugin& plugin) { return plugin.PreStart(request.key); });
  }
};
template class CallTo<PreStartContainer>;

std::vector<ServedCall> PluginCalls() {
  return {Served<GetOptions>(),   Served<GetTopologyHints>(),       Served<Allocate>(),
          Served<RemovePod>(),    Served<GetResourcesAllocation>(), Served<GetAllocatable>(),
          Served<GetPlacement>(), Served<PreStartContainer>()};
}

}  // namespace qrm::calls
