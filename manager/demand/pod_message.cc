// Converts messages to manifests.
#include "manager/demand/pod_message.h"

#include <utility>

#include "api/base/errorf.h"
#include "api/proto/core/v1/pod.pb.h"

namespace qrm::manager {
namespace {

namespace core = ::k8s::io::api::core::v1;

StringMap TextsOf(const google::protobuf::Map<std::string, core::Quantity>& quantities) {
  StringMap texts;
  for (const auto& [resource, quantity] : quantities) {
    texts[resource] = quantity.string();
  }
  return texts;
}

PodManifest::Resources ResourcesOf(const core::ResourceRequirements& resources) {
  return {.requests = TextsOf(resources.requests()), .limits = TextsOf(resources.limits())};
}

template <typename Containers>
std::vector<PodManifest::Container> ContainersOf(const Containers& containers) {
  std::vector<PodManifest::Container> manifests;
  for (const core::Container& container : containers) {
    manifests.push_back({.name = container.name(),
                         .restart_policy = container.restart_policy(),
                         .resources = ResourcesOf(container.resources())});
  }
  return manifests;
}

std::string ControllerKindOf(const core::ObjectMeta& meta) {
  for (const core::OwnerReference& owner : meta.owner_references()) {
    if (owner.controller()) {
      return owner.kind();
    }
  }
  return {};
}

PodManifest ManifestOf(const core::Pod& pod) {
  PodManifest manifest{
      .uid = pod.metadata().uid(),
      .pod_namespace = pod.metadata().namespace_(),
      .name = pod.metadata().name(),
      .annotations = {pod.metadata().annotations().begin(), pod.metadata().annotations().end()},
      .controller_kind = ControllerKindOf(pod.metadata()),
      .priority_class = pod.spec().priority_class_name(),
      .priority = pod.spec().has_priority() ? std::optional(pod.spec().priority()) : std::nullopt,
      .runtime_class = pod.spec().runtime_class_name(),
      .init_containers = ContainersOf(pod.spec().init_containers()),
      .containers = ContainersOf(pod.spec().containers()),
      .resources = ResourcesOf(pod.spec().resources())};
  for (const core::EphemeralContainer& container : pod.spec().ephemeral_containers()) {
    manifest.ephemeral_containers.push_back({.name = container.common().name()});
  }
  return manifest;
}

}  // namespace

StatusOr<PodSpec> ParsePodMessage(const std::string& bytes) {
  core::Pod pod;
  if (!pod.ParseFromString(bytes)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot read a pod: its {} bytes are not a v1.Pod; update kubelet, or the qrmctl "
                  "that sent them",
                  bytes.size());
  }
  return ReadManifest(ManifestOf(pod));
}

std::string UidOfPodMessage(const std::string& bytes) {
  core::Pod pod;
  // Parsing may fail on the tenant's text, which may be invalid UTF-8; the UID comes before it.
  (void)pod.ParseFromString(bytes);
  return pod.metadata().uid();
}

}  // namespace qrm::manager
