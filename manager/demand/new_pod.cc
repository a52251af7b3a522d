// Converts a manifest into what the runtime and kubelet would report about the pod.
#include "manager/demand/new_pod.h"

#include <optional>
#include <set>
#include <utility>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/pod_texts.h"
#include "api/proto/core/v1/pod.pb.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {
namespace {

namespace core = ::k8s::io::api::core::v1;
using google::protobuf::RepeatedPtrField;

constexpr char kSource[] = "manifest";
/// The limit of etcd for one object.
constexpr std::size_t kMaxPodBytes = 3 << 19;
/// Each container's decision names all the others.
constexpr std::size_t kMaxNewPodContainers = 250;
/// A DNS label.
constexpr std::size_t kMaxNameBytes = 63;
/// The pod's labels and annotations go into the request of each container.
constexpr std::size_t kMaxRequestsBytes = 64 << 20;

std::size_t SizeOf(const RepeatedPtrField<core::Container>& containers) {
  std::size_t bytes = 0;
  for (const core::Container& container : containers) {
    bytes += container.ByteSizeLong();
  }
  return bytes;
}

Status CheckNames(const RepeatedPtrField<core::Container>& containers) {
  for (const core::Container& container : containers) {
    if (container.name().size() > kMaxNameBytes) {
      return Errorf(
          StatusCode::kInvalidArgument,
          "cannot try a pod: the name of container {}... has {} bytes, but {} are allowed; "
          "shorten it",
          container.name().substr(0, kMaxNameBytes), container.name().size(), kMaxNameBytes);
    }
  }
  return OkStatus();
}

Status CheckSize(const core::Pod& pod) {
  const auto& init = pod.spec().init_containers();
  const auto& app = pod.spec().containers();
  const auto count = static_cast<std::size_t>(init.size()) + static_cast<std::size_t>(app.size());
  const std::size_t bytes = pod.ByteSizeLong();
  const std::size_t shared = bytes - SizeOf(init) - SizeOf(app);
  if (bytes > kMaxPodBytes || count > kMaxNewPodContainers || shared * count > kMaxRequestsBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot try a pod of {} bytes with {} containers: it is too large for the API "
                  "server; use at most {} containers and fewer annotations",
                  bytes, count, kMaxNewPodContainers);
  }
  QRM_RETURN_IF_ERROR(CheckNames(init));
  return CheckNames(app);
}

StatusOr<core::Pod> Parse(const std::string& bytes, const std::string& uid) {
  core::Pod pod;
  if (!pod.ParseFromString(bytes)) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot try a pod: its {} bytes are not a serialized v1.Pod; send Kubernetes protobuf",
        bytes.size());
  }
  QRM_RETURN_IF_ERROR(CheckSize(pod));
  if (pod.metadata().name().empty() || pod.spec().containers().empty()) {
    return Errorf(StatusCode::kInvalidArgument, "cannot try a pod: it has no {}; add it",
                  pod.metadata().name().empty() ? "metadata.name" : "spec.containers");
  }
  core::ObjectMeta& meta = *pod.mutable_metadata();
  meta.set_uid(uid);
  if (meta.namespace_().empty()) {
    meta.set_namespace_("default");
  }
  return pod;
}

/// The first container as the runtime would report it.
StatusOr<placement::ContainerDemand> FirstDemand(const core::Pod& pod, const PodSpec& spec,
                                                 const CgroupEstimate& estimate) {
  const core::ObjectMeta& meta = pod.metadata();
  const RuntimePod sandbox{.uid = meta.uid(),
                           .pod_namespace = meta.namespace_(),
                           .name = meta.name(),
                           .labels = Bounded(meta.labels()),
                           .annotations = Bounded(meta.annotations())};
  RuntimeContainer first;
  first.name = spec.containers.front().name;
  return estimate.Estimate(sandbox, first);
}

/// The demands without the pod's spec: CPUs and memory of each container, without the others.
NewPod OneByOne(const placement::ContainerDemand& first, const PodSpec& spec,
                const std::string& main) {
  NewPod pod;
  std::set<std::string> unseen;
  for (const PodContainer& container : spec.containers) {
    if (container.kind == PodContainer::Kind::kEphemeral) {
      continue;
    }
    placement::ContainerDemand demand = first;
    demand.container = container.name;
    demand.pod.qos_class = spec.qos_class;
    demand.type =
        main.empty() || main == container.name ? ContainerType::kMain : ContainerType::kSidecar;
    demand.requests = {};
    demand.limits = {};
    if (const auto limit = container.limits.find("cpu"); limit != container.limits.end()) {
      demand.limits.Edit().insert(*limit);
    }
    demand.source = kSource;
    for (const auto& [resource, amount] : container.requests) {
      if (resource == "cpu" || resource == "memory") {
        demand.requests.Edit()[resource] = amount;
      } else {
        unseen.insert(resource);
      }
    }
    pod.admissions.push_back(std::move(demand));
  }
  pod.unseen = {unseen.begin(), unseen.end()};
  return pod;
}

}  // namespace

StatusOr<NewPod> ReadNewPod(const std::string& bytes, const std::string& uid,
                            const placement::PodKeys& keys, SpecsFrom specs) {
  QRM_ASSIGN_OR_RETURN(const core::Pod pod, Parse(bytes, uid));
  QRM_ASSIGN_OR_RETURN(const PodSpec spec, ParsePodMessage(pod.SerializeAsString()));
  const CgroupEstimate estimate(keys);
  QRM_ASSIGN_OR_RETURN(const placement::ContainerDemand first, FirstDemand(pod, spec, estimate));
  const std::string main = estimate.MainContainerOf(first.pod);
  if (specs == SpecsFrom::kCgroups) {
    return OneByOne(first, spec, main);
  }
  std::optional<placement::ContainerDemand> all = Refine(first, spec, main, kSource);
  QRM_CHECK(all.has_value());  // the first container is one of the spec's
  return NewPod{.admissions = {*std::move(all)}, .unseen = {}};
}

}  // namespace qrm::manager
