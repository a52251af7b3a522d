// Merges kubelet's answers into qrmd's by pod and container name, since the API carries no UIDs.
#include "manager/podresources/kubelet_view.h"

#include <unordered_map>
#include <utility>

#include "api/proto/podresources/v1/api.pb.h"

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

struct KubeletView::Impl {
  struct Known {
    const ::v1::PodResources* pod;
    std::string bytes;
  };

  Impl(::v1::ListPodResourcesResponse listed, ::v1::AllocatableResourcesResponse allocatable_ones)
      : list(std::move(listed)), allocatable(std::move(allocatable_ones)) {
    for (const ::v1::PodResources& pod : list.pod_resources()) {
      pods.emplace(pod.namespace_() + "/" + pod.name(),
                   Known{.pod = &pod, .bytes = pod.SerializeAsString()});
    }
  }

  const Known* Find(const std::string& pod_namespace, const std::string& name) const {
    if (pods.empty()) {
      return nullptr;
    }
    const auto found = pods.find(pod_namespace + "/" + name);
    return found == pods.end() ? nullptr : &found->second;
  }

  const ::v1::ListPodResourcesResponse list;
  const ::v1::AllocatableResourcesResponse allocatable;
  std::unordered_map<std::string, Known> pods;  // by "namespace/name"
};

KubeletView::KubeletView() : KubeletView({}, {}) {}

KubeletView::KubeletView(::v1::ListPodResourcesResponse list,
                         ::v1::AllocatableResourcesResponse allocatable)
    : impl_(std::make_unique<const Impl>(std::move(list), std::move(allocatable))) {}

KubeletView::~KubeletView() = default;

const ::v1::ListPodResourcesResponse& KubeletView::list() const {
  return impl_->list;
}

const ::v1::AllocatableResourcesResponse& KubeletView::allocatable() const {
  return impl_->allocatable;
}

bool KubeletView::AgreesOn(const std::string& pod_namespace, const std::string& name,
                           const KubeletView& other) const {
  const Impl::Known* ours = impl_->Find(pod_namespace, name);
  const Impl::Known* theirs = other.impl_->Find(pod_namespace, name);
  return ours == nullptr || theirs == nullptr ? ours == theirs : ours->bytes == theirs->bytes;
}

const ::v1::PodResources* KubeletView::FindPod(const std::string& pod_namespace,
                                               const std::string& name) const {
  const Impl::Known* known = impl_->Find(pod_namespace, name);
  return known == nullptr ? nullptr : known->pod;
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
