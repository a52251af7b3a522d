// Checks specs and converts them into demands.
#include "manager/demand/pod_spec.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/quantity.h"
#include "plugins/placement/requests.h"
#include "plugins/rules/device_nodes.h"

namespace qrm::manager {
namespace {

using Kind = PodContainer::Kind;
using Amounts = std::map<std::string, double>;

constexpr char kConfigHash[] = "kubernetes.io/config.hash";
constexpr char kConfigMirror[] = "kubernetes.io/config.mirror";
/// More than kubelet accepts; keeps a faulty peer from filling the memory.
constexpr std::size_t kMaxSpecContainers = 1000;

StatusOr<Amounts> ReadAmounts(const StringMap& texts) {
  Amounts amounts;
  for (const auto& [resource, text] : texts) {
    QRM_RETURN_IF_ERROR(CheckResourceName(resource));
    QRM_ASSIGN_OR_RETURN(const double amount, ParseQuantity(text));
    if (amount > 0) {
      amounts[resource] = amount;
    }
  }
  return amounts;
}

/// A container with its amounts only, or what the pod says of itself as a whole.
StatusOr<PodContainer> Read(const PodManifest::Resources& resources) {
  PodContainer read;
  read.uses_claims = resources.has_claims;
  QRM_ASSIGN_OR_RETURN(read.requests, ReadAmounts(resources.requests));
  QRM_ASSIGN_OR_RETURN(read.limits, ReadAmounts(resources.limits));
  for (const auto& [resource, limit] : read.limits) {
    if (!resources.requests.contains(resource)) {
      read.requests[resource] = limit;
    }
  }
  return read;
}

/// Reads the containers of one manifest in their order.
class ContainerReader {
 public:
  Status AddAll(const std::vector<PodManifest::Container>& containers, Kind kind) {
    for (const PodManifest::Container& container : containers) {
      QRM_RETURN_IF_ERROR(Annotate(Add(container, kind), "container " + Quoted(container.name)));
    }
    return OkStatus();
  }

  std::vector<PodContainer> specs;

 private:
  Status Add(const PodManifest::Container& container, Kind kind) {
    if (container.name.empty() || !names_.insert(container.name).second) {
      return Errorf(StatusCode::kInvalidArgument, "its name is {}",
                    container.name.empty() ? "missing" : "used twice");
    }
    if (specs.size() >= kMaxSpecContainers) {
      return Errorf(StatusCode::kInvalidArgument, "the pod has more than {} containers",
                    kMaxSpecContainers);
    }
    QRM_ASSIGN_OR_RETURN(PodContainer read, Read(container.resources));
    read.name = container.name;
    read.kind = kind == Kind::kInit && container.restart_policy == "Always" ? Kind::kSidecar : kind;
    specs.push_back(std::move(read));
    return OkStatus();
  }

  std::set<std::string> names_;
};

bool HasPodLevel(const PodManifest& manifest) {
  return !manifest.resources.requests.empty() || !manifest.resources.limits.empty();
}

std::string NameOf(const PodManifest& manifest) {
  return fmt::format("{}/{} ({})", Quoted(manifest.pod_namespace), Quoted(manifest.name),
                     Quoted(manifest.uid));
}

Status CheckIdentity(const PodManifest& manifest) {
  if (manifest.uid.empty() || manifest.pod_namespace.empty() || manifest.name.empty() ||
      manifest.containers.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot use the spec of pod {}: UID, namespace, name or containers are missing; "
                  "update kubelet",
                  NameOf(manifest));
  }
  return OkStatus();
}

/// Kubelet sets config.hash on a static pod and its mirror, and config.mirror on the mirror only.
std::string StaticUidOf(const PodManifest& manifest) {
  const auto hash = manifest.annotations.find(kConfigHash);
  const auto mirror = manifest.annotations.find(kConfigMirror);
  const auto end = manifest.annotations.end();
  return hash != end && mirror != end && mirror->second == hash->second &&
                 hash->second != manifest.uid
             ? hash->second
             : "";
}

}  // namespace

StatusOr<PodSpec> ReadManifest(const PodManifest& manifest) {
  QRM_RETURN_IF_ERROR(CheckIdentity(manifest));
  ContainerReader reader;
  Status read = reader.AddAll(manifest.init_containers, Kind::kInit);
  for (const auto& [containers, kind] :
       {std::pair(&manifest.containers, Kind::kApp),
        std::pair(&manifest.ephemeral_containers, Kind::kEphemeral)}) {
    read = read.ok() ? reader.AddAll(*containers, kind) : read;
  }
  const StatusOr<PodContainer> whole = Read(manifest.resources);
  read = read.ok() ? whole.status() : read;
  if (!read.ok()) {
    return Annotate(read, "cannot use the spec of pod " + NameOf(manifest));
  }
  return PodSpec{.uid = manifest.uid,
                 .static_uid = StaticUidOf(manifest),
                 .pod_namespace = manifest.pod_namespace,
                 .name = manifest.name,
                 .qos_class = HasPodLevel(manifest) ? qrm::QosClassOf({*whole})
                                                    : qrm::QosClassOf(reader.specs),
                 .controller_kind = manifest.controller_kind,
                 .priority_class = manifest.priority_class,
                 .priority = manifest.priority,
                 .runtime_class = manifest.runtime_class,
                 .containers = std::move(reader.specs)};
}

std::optional<placement::ContainerDemand> Refine(const placement::ContainerDemand& estimate,
                                                 const PodSpec& spec,
                                                 const std::string& main_container,
                                                 const std::string& source) {
  placement::ContainerDemand common = estimate;
  common.pod.qos_class = spec.qos_class;
  common.source = source;
  common.controller_kind = spec.controller_kind;
  common.priority_class = spec.priority_class;
  if (spec.priority.has_value()) {
    common.pod.annotations.Edit()[rules::kPodPriorityAnnotation] = std::to_string(*spec.priority);
  }
  if (!spec.runtime_class.empty()) {
    common.runtime_class = spec.runtime_class;
  }
  std::optional<placement::ContainerDemand> refined;
  std::vector<placement::ContainerDemand> others;
  std::size_t place = 0;
  for (placement::ContainerDemand& demand :
       placement::DemandsOf(common, spec.containers, main_container)) {
    if (demand.container == estimate.container) {
      place = others.size();
      refined = std::move(demand);
    } else if (demand.type != ContainerType::kEphemeral) {
      demand.runtime_id = {};
      others.push_back(std::move(demand));
    }
  }
  if (refined.has_value() && refined->type != ContainerType::kEphemeral) {
    refined->place = place;
    refined->others = std::move(others);
  }
  return refined;
}

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
  return {.requests = TextsOf(resources.requests()),
          .limits = TextsOf(resources.limits()),
          .has_claims = !resources.claims().empty()};
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
