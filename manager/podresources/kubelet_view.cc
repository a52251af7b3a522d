// Merges kubelet's answers into qrmd's by pod and container name, since the API carries no UIDs.
#include "manager/podresources/kubelet_view.h"

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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

struct KubeletView::Impl {
  struct Pod {
    std::string pod_namespace;
    std::string name;
    std::string_view bytes;  // of `list`
  };

  Impl(std::string list_bytes, std::string allocatable_bytes)
      : list(std::move(list_bytes)), allocatable(std::move(allocatable_bytes)) {}
  ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Fills the rest from the bytes.
  Status Read() {
    bool parsed = true;
    ::v1::PodResources pod;
    const auto rest = TakeFields(list, [&](int, std::string_view bytes) {
      parsed = parsed && pods.size() <= kMostPods && Parse(bytes, pod);
      if (parsed) {
        index.emplace(pod.namespace_() + "/" + pod.name(), pods.size());
        pods.push_back({.pod_namespace = pod.namespace_(), .name = pod.name(), .bytes = bytes});
      }
      return true;
    });
    if (pods.size() > kMostPods) {
      return Errorf(StatusCode::kResourceExhausted,
                    "kubelet lists more than {} pods; check kubelet", kMostPods);
    }
    if (!parsed || !rest.has_value() ||
        !Parse(allocatable, *std::make_unique<::v1::AllocatableResourcesResponse>())) {
      return Errorf(StatusCode::kInvalidArgument,
                    "kubelet's answer is not of the pod-resources API; check kubelet's version");
    }
    return OkStatus();
  }

  const Pod* Find(const std::string& pod_namespace, const std::string& name) const {
    if (pods.empty()) {
      return nullptr;
    }
    const auto found = index.find(pod_namespace + "/" + name);
    return found == index.end() ? nullptr : &pods[found->second];
  }

  const std::string list;
  const std::string allocatable;
  std::vector<Pod> pods;
  std::unordered_map<std::string, std::size_t> index;  // of `pods`, by "namespace/name"
};

KubeletView::KubeletView() : KubeletView(std::make_unique<const Impl>("", "")) {}

KubeletView::KubeletView(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}

StatusOr<std::shared_ptr<const KubeletView>> KubeletView::Make(std::string list,
                                                               std::string allocatable) {
  auto impl = std::make_unique<Impl>(std::move(list), std::move(allocatable));
  QRM_RETURN_IF_ERROR(impl->Read());
  return std::shared_ptr<const KubeletView>(new KubeletView(std::move(impl)));
}

KubeletView::~KubeletView() = default;

bool KubeletView::IsOf(const std::string& list, const std::string& allocatable) const {
  return impl_->list == list && impl_->allocatable == allocatable;
}

const std::string& KubeletView::allocatable() const {
  return impl_->allocatable;
}

bool KubeletView::FindPod(const std::string& pod_namespace, const std::string& name,
                          ::v1::PodResources& found) const {
  const Impl::Pod* known = impl_->Find(pod_namespace, name);
  return known != nullptr && Parse(known->bytes, found);
}

void KubeletView::ForEachPod(
    const std::function<bool(const std::string& pod_namespace, const std::string& name)>& wanted,
    const std::function<void(::v1::PodResources& pod)>& take) const {
  for (const Impl::Pod& pod : impl_->pods) {
    ::v1::PodResources message;
    if (wanted(pod.pod_namespace, pod.name) && Parse(pod.bytes, message)) {
      take(message);
    }
  }
}

void KubeletView::AddAllocatable(::v1::AllocatableResourcesResponse& allocatable) const {
  TakeFields(impl_->allocatable, [&](int field, std::string_view bytes) {
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
