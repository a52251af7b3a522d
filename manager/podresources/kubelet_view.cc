// Merges kubelet's answers into qrmd's by pod and container name, since the API carries no UIDs.
#include "manager/podresources/kubelet_view.h"

#include <string_view>
#include <utility>

#include "api/base/errorf.h"
#include "api/message_fields.h"
#include "api/proto/podresources/v1/api.pb.h"

namespace qrm::manager {
namespace {

bool Parse(std::string_view bytes, google::protobuf::MessageLite& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void DropEmptyTopology(::v1::ContainerDevices& device) {
  if (device.topology().nodes().empty()) {
    device.clear_topology();
  }
}

::v1::ContainerResources& ContainerOf(::v1::PodResources& pod, const std::string& name) {
  for (::v1::ContainerResources& container : *pod.mutable_containers()) {
    if (container.name() == name) {
      return container;
    }
  }
  ::v1::ContainerResources& added = *pod.add_containers();
  added.set_name(name);
  return added;
}

}  // namespace

StatusOr<std::shared_ptr<const KubeletView>> KubeletView::Make(std::string list,
                                                               std::string allocatable) {
  auto view = std::make_shared<KubeletView>();
  view->list_ = std::move(list);
  view->allocatable_ = std::move(allocatable);
  QRM_RETURN_IF_ERROR(view->Read());
  return std::shared_ptr<const KubeletView>(std::move(view));
}

Status KubeletView::Read() {
  bool parsed = true;
  ::v1::PodResources pod;
  const auto rest = TakeFields(list_, [&](int, std::string_view bytes) {
    parsed = parsed && pods_.size() <= kMostPods && Parse(bytes, pod);
    if (parsed) {
      index_.emplace(pod.namespace_() + "/" + pod.name(), pods_.size());
      pods_.push_back({.pod_namespace = pod.namespace_(), .name = pod.name(), .bytes = bytes});
    }
    return true;
  });
  if (pods_.size() > kMostPods) {
    return Errorf(StatusCode::kResourceExhausted, "kubelet lists more than {} pods; check kubelet",
                  kMostPods);
  }
  if (!parsed || !rest.has_value() ||
      !Parse(allocatable_, *std::make_unique<::v1::AllocatableResourcesResponse>())) {
    return Errorf(StatusCode::kInvalidArgument,
                  "kubelet's answer is not of the pod-resources API; check kubelet's version");
  }
  return OkStatus();
}

bool KubeletView::FindPod(const std::string& pod_namespace, const std::string& name,
                          ::v1::PodResources& found) const {
  const auto known = index_.find(pod_namespace + "/" + name);
  return known != index_.end() && Parse(pods_[known->second].bytes, found);
}

void KubeletView::ForEachPod(
    const std::function<bool(const std::string& pod_namespace, const std::string& name)>& wanted,
    const std::function<void(::v1::PodResources& pod)>& take) const {
  for (const Pod& pod : pods_) {
    ::v1::PodResources message;
    if (wanted(pod.pod_namespace, pod.name) && Parse(pod.bytes, message)) {
      take(message);
    }
  }
}

void KubeletView::AddAllocatable(::v1::AllocatableResourcesResponse& allocatable) const {
  TakeFields(allocatable_, [&](int field, std::string_view bytes) {
    if (field == ::v1::AllocatableResourcesResponse::kDevicesFieldNumber) {
      ::v1::ContainerDevices& device = *allocatable.add_devices();
      Parse(bytes, device);
      DropEmptyTopology(device);
    }
    return true;
  });
}

void AddKubeletPod(const ::v1::PodResources& kubelet, ::v1::PodResources& pod) {
  for (const ::v1::ContainerResources& from : kubelet.containers()) {
    ::v1::ContainerResources& to = ContainerOf(pod, from.name());
    for (const ::v1::ContainerDevices& device : from.devices()) {
      ::v1::ContainerDevices& added = *to.add_devices();
      added = device;
      DropEmptyTopology(added);
    }
    to.mutable_dynamic_resources()->MergeFrom(from.dynamic_resources());
  }
}

}  // namespace qrm::manager
