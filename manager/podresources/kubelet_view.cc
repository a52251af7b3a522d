// Merges kubelet's answers into ours by pod and container name, since the API carries no UIDs.
#include "manager/podresources/kubelet_view.h"

#include <utility>

namespace qrm::manager {
namespace {

using Devices = ::google::protobuf::RepeatedPtrField<::v1::ContainerDevices>;

void AddDevices(const Devices& from, Devices& to) {
  for (const ::v1::ContainerDevices& device : from) {
    ::v1::ContainerDevices& added = *to.Add();
    added = device;
    if (added.topology().nodes().empty()) {
      added.clear_topology();
    }
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

KubeletView::KubeletView(::v1::ListPodResourcesResponse list,
                         ::v1::AllocatableResourcesResponse allocatable)
    : list_(std::move(list)), allocatable_(std::move(allocatable)) {
  for (const ::v1::PodResources& pod : list_.pod_resources()) {
    pods_.emplace(pod.namespace_() + "/" + pod.name(),
                  Known{.pod = &pod, .bytes = pod.SerializeAsString()});
  }
}

bool KubeletView::AgreesOn(const std::string& pod_namespace, const std::string& name,
                           const KubeletView& other) const {
  const Known* ours = Find(pod_namespace, name);
  const Known* theirs = other.Find(pod_namespace, name);
  return ours == nullptr || theirs == nullptr ? ours == theirs : ours->bytes == theirs->bytes;
}

const ::v1::PodResources* KubeletView::FindPod(const std::string& pod_namespace,
                                               const std::string& name) const {
  const Known* known = Find(pod_namespace, name);
  return known == nullptr ? nullptr : known->pod;
}

const KubeletView::Known* KubeletView::Find(const std::string& pod_namespace,
                                            const std::string& name) const {
  if (pods_.empty()) {
    return nullptr;
  }
  const auto found = pods_.find(pod_namespace + "/" + name);
  return found == pods_.end() ? nullptr : &found->second;
}

void AddKubeletPod(const ::v1::PodResources& kubelet, ::v1::PodResources& pod) {
  for (const ::v1::ContainerResources& from : kubelet.containers()) {
    ::v1::ContainerResources& to = ContainerOf(pod, from.name());
    AddDevices(from.devices(), *to.mutable_devices());
    to.mutable_dynamic_resources()->MergeFrom(from.dynamic_resources());
  }
}

void AddKubeletAllocatable(const ::v1::AllocatableResourcesResponse& kubelet,
                           ::v1::AllocatableResourcesResponse& allocatable) {
  AddDevices(kubelet.devices(), *allocatable.mutable_devices());
}

}  // namespace qrm::manager
