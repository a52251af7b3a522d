// Writes grants by pod, container and resource.
#include "plugins/sdk/allocations_answer.h"

#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"

namespace qrm::sdk {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

pb::GetResourcesAllocationResponse Build(const Grants& grants, const std::string& resource) {
  pb::GetResourcesAllocationResponse message;
  for (const auto& [key, grant] : grants) {
    pb::ContainerResources& pod = (*message.mutable_pod_resources())[key.pod_uid];
    pb::ResourceAllocation& container = (*pod.mutable_container_resources())[key.container];
    (*container.mutable_resource_allocation())[resource] = wire::ToWire(grant.allocation);
  }
  return message;
}

}  // namespace

const AllocationsAnswer::Bytes& AllocationsAnswer::For(const Grants& grants,
                                                       const std::string& resource,
                                                       uint64_t revision) {
  if (revision_ != revision) {
    bytes_ = std::make_shared<const std::string>(Build(grants, resource).SerializeAsString());
    revision_ = revision;
  }
  return bytes_;
}

}  // namespace qrm::sdk
