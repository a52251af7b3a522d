// Grants by pod, container and resource.
#include "plugins/sdk/allocations_answer.h"

#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"

namespace qrm::sdk {
namespace {

namespace pb = ::resourceplugin::v1alpha1;

pb::GetResourcesAllocationResponse Build(const PluginDriver& driver) {
  pb::GetResourcesAllocationResponse message;
  for (const auto& [key, grant] : driver.grants()) {
    pb::ContainerResources& pod = (*message.mutable_pod_resources())[key.pod_uid];
    pb::ResourceAllocation& container = (*pod.mutable_container_resources())[key.container];
    (*container.mutable_resource_allocation())[driver.resource()] = wire::ToWire(grant.allocation);
  }
  return message;
}

}  // namespace

const AllocationsAnswer::Bytes& AllocationsAnswer::For(const PluginDriver& driver) {
  if (revision_ != driver.revision()) {
    bytes_ = std::make_shared<const std::string>(Build(driver).SerializeAsString());
    revision_ = driver.revision();
  }
  return bytes_;
}

}  // namespace qrm::sdk
