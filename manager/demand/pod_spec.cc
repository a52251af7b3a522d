// Checks specs and converts them into demands.
#include "manager/demand/pod_spec.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "api/base/errorf.h"
#include "api/quantity.h"
#include "plugins/placement/pod_priority.h"

namespace qrm::manager {
namespace {

using Kind = ContainerSpec::Kind;
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

/// The amounts of one container, or of the pod.
struct ReadResources {
  Amounts requests;
  Amounts limits;
};

StatusOr<ReadResources> Read(const PodManifest::Resources& resources) {
  ReadResources read;
  QRM_ASSIGN_OR_RETURN(read.requests, ReadAmounts(resources.requests));
  QRM_ASSIGN_OR_RETURN(read.limits, ReadAmounts(resources.limits));
  for (const auto& [resource, limit] : read.limits) {
    if (!resources.requests.contains(resource)) {
      read.requests[resource] = limit;
    }
  }
  return read;
}

/// Sums up what decides the QoS class: CPUs and memory only.
class QosSum {
 public:
  void Add(const ReadResources& resources) {
    for (const char* resource : {"cpu", "memory"}) {
      const auto limit = resources.limits.find(resource);
      const auto request = resources.requests.find(resource);
      all_limited_ = all_limited_ && limit != resources.limits.end();
      any_ = any_ || request != resources.requests.end() || limit != resources.limits.end();
      requests_[resource] += request == resources.requests.end() ? 0 : request->second;
      limits_[resource] += limit == resources.limits.end() ? 0 : limit->second;
    }
  }
  std::string QosClass() const {
    if (!any_) {
      return "BestEffort";
    }
    return all_limited_ && requests_ == limits_ ? "Guaranteed" : "Burstable";
  }

 private:
  bool any_ = false;
  bool all_limited_ = true;
  Amounts requests_;
  Amounts limits_;
};

/// Reads the containers of one manifest in their order.
class ContainerReader {
 public:
  Status AddAll(const std::vector<PodManifest::Container>& containers, Kind kind) {
    for (std::size_t index = 0; index < containers.size(); ++index) {
      const PodManifest::Container& container = containers[index];
      QRM_RETURN_IF_ERROR(Annotate(Add(container, kind, index), "container " + container.name));
    }
    return OkStatus();
  }

  std::vector<ContainerSpec> specs;
  QosSum qos;

 private:
  Status Add(const PodManifest::Container& container, Kind kind, std::size_t index) {
    if (container.name.empty() || !names_.insert(container.name).second) {
      return Errorf(StatusCode::kInvalidArgument, "its name is {}",
                    container.name.empty() ? "missing" : "used twice");
    }
    if (specs.size() >= kMaxSpecContainers) {
      return Errorf(StatusCode::kInvalidArgument, "the pod has more than {} containers",
                    kMaxSpecContainers);
    }
    QRM_ASSIGN_OR_RETURN(ReadResources resources, Read(container.resources));
    if (kind != Kind::kEphemeral) {
      qos.Add(resources);
    }
    const bool restarts = kind == Kind::kInit && container.restart_policy == "Always";
    specs.push_back({.name = container.name,
                     .kind = restarts ? Kind::kRestartableInit : kind,
                     .index = index,
                     .requests = std::move(resources.requests),
                     .limits = std::move(resources.limits)});
    return OkStatus();
  }

  std::set<std::string> names_;
};

bool HasPodLevel(const PodManifest& manifest) {
  return !manifest.resources.requests.empty() || !manifest.resources.limits.empty();
}

std::string NameOf(const PodManifest& manifest) {
  return fmt::format("{}/{} ({})", manifest.pod_namespace, manifest.name, manifest.uid);
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

bool IsMain(const ContainerSpec& container, const PodSpec& spec, const std::string& main) {
  const bool named = std::any_of(
      spec.containers.begin(), spec.containers.end(),
      [&](const ContainerSpec& other) { return other.kind == Kind::kApp && other.name == main; });
  return named ? container.name == main : container.index == 0;
}

ContainerType TypeOf(const ContainerSpec& container, const PodSpec& spec, const std::string& main) {
  switch (container.kind) {
    case Kind::kInit:
      return ContainerType::kInit;
    case Kind::kRestartableInit:
      return ContainerType::kSidecar;
    case Kind::kEphemeral:
      return ContainerType::kEphemeral;
    case Kind::kApp:
      break;
  }
  return IsMain(container, spec, main) ? ContainerType::kMain : ContainerType::kSidecar;
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
  const StatusOr<ReadResources> whole = Read(manifest.resources);
  read = read.ok() ? whole.status() : read;
  if (!read.ok()) {
    return Annotate(read, "cannot use the spec of pod " + NameOf(manifest));
  }
  if (HasPodLevel(manifest)) {
    reader.qos = QosSum();
    reader.qos.Add(*whole);
  }
  return PodSpec{.uid = manifest.uid,
                 .static_uid = StaticUidOf(manifest),
                 .pod_namespace = manifest.pod_namespace,
                 .name = manifest.name,
                 .qos_class = reader.qos.QosClass(),
                 .controller_kind = manifest.controller_kind,
                 .priority_class = manifest.priority_class,
                 .priority = manifest.priority,
                 .runtime_class = manifest.runtime_class,
                 .containers = std::move(reader.specs)};
}

std::optional<ContainerDemand> Refine(const ContainerDemand& estimate, const PodSpec& spec,
                                      const std::string& main_container,
                                      const std::string& source) {
  std::optional<ContainerDemand> refined;
  std::vector<ContainerDemand> others;
  std::size_t place = 0;
  for (const ContainerSpec& container : spec.containers) {
    ContainerDemand demand = estimate;
    demand.container = container.name;
    demand.pod.qos_class = spec.qos_class;
    demand.type = TypeOf(container, spec, main_container);
    demand.index = container.index;
    demand.restartable_init = container.kind == Kind::kRestartableInit;
    demand.requests = container.requests;
    demand.limits = container.limits;
    demand.source = source;
    demand.controller_kind = spec.controller_kind;
    demand.priority_class = spec.priority_class;
    if (spec.priority.has_value()) {
      demand.pod.annotations.Edit()[placement::kPodPriorityAnnotation] =
          std::to_string(*spec.priority);
    }
    if (!spec.runtime_class.empty()) {
      demand.runtime_class = spec.runtime_class;
    }
    if (container.name == estimate.container) {
      place = others.size();
      refined = std::move(demand);
    } else if (container.kind != Kind::kEphemeral) {
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

}  // namespace qrm::manager
