// Converts between protobuf messages and the value types, and checks everything that comes in.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"

namespace resourceplugin::v1alpha1 {
class AllocatableTopologyAwareResource;
class GetResourcesAllocationResponse;
class ResourceAllocationInfo;
class ResourceAllocationResponse;
class ResourceHintsResponse;
class ResourcePluginOptions;
class ResourceRequest;
class TopologyAwareQuantity;
class TopologyHint;
}  // namespace resourceplugin::v1alpha1

namespace google::protobuf {
template <typename T>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace qrm::wire {

namespace pb = ::resourceplugin::v1alpha1;

/// The plugin API version that both sides speak, and the plugin type of the watcher path.
inline constexpr char kPluginApiVersion[] = "v1alpha1";
inline constexpr char kResourcePluginType[] = "ResourcePlugin";

/// `request` as a message. An aligned Allocate always carries a hint, with no nodes when there is
/// no affinity: Go plugins that echo an absent hint crash.
pb::ResourceRequest ToWire(const ContainerRequest& request);

/// Errors: kInvalidArgument naming the field when the pod UID, container or resource name is empty,
/// the container type is unknown, an amount is negative or no number, or a hint names a node beyond
/// IdSet::kMaxIds.
StatusOr<ContainerRequest> FromWire(const pb::ResourceRequest& message);

pb::TopologyHint ToWire(const TopologyHint& hint);
/// Errors: kInvalidArgument for a node id beyond IdSet::kMaxIds.
StatusOr<TopologyHint> FromWire(const pb::TopologyHint& message);

/// The answer to `request` with `hints` under its resource name; presence of the list as HintList
/// means it.
pb::ResourceHintsResponse HintsResponse(const ContainerRequest& request, const HintList& hints);

/// The hints that `response` has for `resource`: no entry or no list means no preference, an empty
/// list means impossible. Errors: kInvalidArgument when the response is for another pod, container
/// or resource than `request`, or a node is out of range.
StatusOr<HintList> HintsFrom(const pb::ResourceHintsResponse& response,
                             const ContainerRequest& request);

pb::ResourceAllocationInfo ToWire(const ResourceAllocation& allocation);
/// Errors: kInvalidArgument for a hint node out of range, a quantity that is negative or no number,
/// or a value for CpusetCpus or CpusetMems that is not in the kernel's list form.
StatusOr<ResourceAllocation> FromWire(const pb::ResourceAllocationInfo& message);

/// What FromWire says of what ToWire makes of `allocation`, without making it.
Status Check(const ResourceAllocation& allocation);

/// The answer to `request` with `allocations`; empty `allocations` leave the result absent.
pb::ResourceAllocationResponse AllocationResponse(const ContainerRequest& request,
                                                  const AllocationByResource& allocations);
/// Errors: as for FromWire, and when the response is for another pod, container or resource than
/// `request`.
StatusOr<AllocationByResource> AllocationsFrom(const pb::ResourceAllocationResponse& response,
                                               const ContainerRequest& request);

pb::GetResourcesAllocationResponse ToWire(const AllocationByContainer& allocations);
StatusOr<AllocationByContainer> FromWire(const pb::GetResourcesAllocationResponse& message);

pb::ResourcePluginOptions ToWire(const PluginOptions& options);
PluginOptions FromWire(const pb::ResourcePluginOptions& message);

using PlacedQuantities = google::protobuf::RepeatedPtrField<pb::TopologyAwareQuantity>;
void FillPlaces(const std::vector<PlacedQuantity>& places, PlacedQuantities& list);
/// Errors: kInvalidArgument for an amount that is negative or no number.
StatusOr<std::vector<PlacedQuantity>> PlacesFrom(const PlacedQuantities& list);

pb::AllocatableTopologyAwareResource ToWire(const AllocatableResource& resource);
/// Amounts by node are those of level NUMA.
StatusOr<AllocatableResource> FromWire(const pb::AllocatableTopologyAwareResource& message);

}  // namespace qrm::wire
