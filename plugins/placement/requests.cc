// Roles and types, skips, implicit and mapped names, and one request for each plugin.
#include "plugins/placement/requests.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "api/container_turns.h"
#include "api/pod_texts.h"
#include "plugins/config/class_request.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::placement {
namespace {

constexpr char kMemory[] = "memory";

std::string TextOf(const StringMap& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string() : found->second;
}

std::string FirstOf(std::string first, std::string second) {
  return first.empty() ? std::move(second) : std::move(first);
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsOn(const StringMap& annotations, const std::string& key) {
  const std::string value = TextOf(annotations, key);
  return !value.empty() && value != "false";
}

bool IsSystemCores(const checkpoint::PodMeta& pod) {
  return TextOf(pod.annotations, rules::kQosLevelKey) == "system_cores";
}

/// Whether the pod has the annotation that asks qrmd to skip it.
bool WishesToOptOut(const ContainerDemand& demand, const AdmissionOptions& options) {
  const auto found = demand.pod.annotations.find(options.skip_annotation);
  return found != demand.pod.annotations.end() && !found->second.empty() &&
         found->second != "false";
}

}  // namespace

bool IsDedicatedCores(const checkpoint::PodMeta& pod) {
  return TextOf(pod.annotations, rules::kQosLevelKey) == "dedicated_cores";
}

std::string ReadRole(const PodKeys& keys, checkpoint::PodMeta& pod) {
  const std::string by_label = TextOf(pod.labels, keys.role_label);
  pod.role = FirstOf(by_label, TextOf(pod.annotations, keys.role_annotation));
  pod.type = FirstOf(TextOf(pod.annotations, keys.type_annotation),
                     TextOf(pod.annotations, keys.type_annotation_fallback));
  return by_label.empty() ? "annotation " + keys.role_annotation : "label " + keys.role_label;
}

std::string MainContainerOf(const PodKeys& keys, const checkpoint::PodMeta& pod) {
  return TextOf(pod.annotations, keys.main_container_annotation);
}

std::vector<ContainerDemand> DemandsOf(const ContainerDemand& common,
                                       const std::vector<PodContainer>& containers,
                                       const std::string& main) {
  using Kind = PodContainer::Kind;
  std::vector<ContainerDemand> demands(containers.size(), common);
  uint64_t inits = 0;
  uint64_t apps = 0;
  uint64_t ephemerals = 0;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const PodContainer& container = containers[i];
    demands[i].container = container.name;
    demands[i].type = TypeOf(container, containers, main);
    demands[i].index = container.kind == Kind::kApp         ? apps++
                       : container.kind == Kind::kEphemeral ? ephemerals++
                                                            : inits++;
    demands[i].restartable_init = container.kind == Kind::kSidecar;
    demands[i].requests = container.requests;
    demands[i].limits = container.limits;
    demands[i].uses_claims = container.uses_claims;
  }
  return demands;
}

std::string ReasonToSkip(const ContainerDemand& demand, const AdmissionOptions& options) {
  const std::string& pod_namespace = demand.pod.pod_namespace;
  const bool may_opt_out = options.permissions.Allows(pod_namespace, {Feature::kOptOut, "", ""});
  if (may_opt_out && WishesToOptOut(demand, options)) {
    return fmt::format("annotation {} is set", options.skip_annotation);
  }
  if (Has(options.skipped_namespaces, pod_namespace) && !IsSystemCores(demand.pod)) {
    return fmt::format("namespace {} is in skip-namespaces", pod_namespace);
  }
  if (may_opt_out && Has(options.skipped_priority_classes, demand.priority_class)) {
    return fmt::format("priority class {} is in skip-priority-classes", demand.priority_class);
  }
  if (may_opt_out && options.skip_daemonset_pods && demand.controller_kind == "DaemonSet" &&
      !IsSystemCores(demand.pod)) {
    return fmt::format(
        "a DaemonSet owns the pod and skip-daemonset-pods is on; annotate it with {}=system_cores "
        "to have it placed",
        rules::kQosLevelKey);
  }
  return {};
}

ContainerDemand AskingForNothing(ContainerDemand demand, const checkpoint::PodRecord* recorded) {
  demand.requests = {};
  demand.others.clear();
  demand.place = 0;
  if (recorded != nullptr) {
    demand.pod = recorded->meta;
    return demand;
  }
  demand.pod.role = {};
  demand.pod.type = {};
  demand.pod.labels = {};
  std::erase_if(demand.pod.annotations.Edit(),
                [](const auto& annotation) { return !config::IsClassKey(annotation.first); });
  return demand;
}

std::map<std::string, double> AllRequests(const ContainerDemand& demand,
                                          const AdmissionOptions& options,
                                          const std::vector<std::string>& natives) {
  std::map<std::string, double> requests = demand.requests;
  for (const ImplicitResource& implicit : options.implicit_resources) {
    if (Applies(implicit, demand.pod)) {
      requests.emplace(implicit.resource, 1);
    }
  }
  for (const std::string& resource : natives) {
    const bool requested = std::any_of(requests.begin(), requests.end(), [&](const auto& request) {
      return PluginNameOf(request.first, options) == resource;
    });
    if (!requested) {
      requests.emplace(resource, 0);
    }
  }
  return requests;
}

ContainerDemand WholePod(const std::vector<const ContainerDemand*>& containers,
                         const AdmissionOptions& options, const std::vector<std::string>& natives) {
  std::vector<ContainerAmounts> amounts;
  amounts.reserve(containers.size());
  const ContainerDemand* main = containers.front();
  for (const ContainerDemand* container : containers) {
    amounts.push_back(
        {.type = container->type, .amounts = AllRequests(*container, options, natives)});
    main = container->type == ContainerType::kMain ? container : main;
  }
  ContainerDemand whole = *main;
  whole.requests = PodRequest(amounts);
  for (const ContainerDemand* container : containers) {
    for (const auto& [name, device] : container->devices) {
      if (container != main) {
        whole.devices.emplace(fmt::format("{} of {}", name, container->container), device);
      }
    }
  }
  return whole;
}

bool IsApp(const ContainerDemand& demand) {
  return demand.type == ContainerType::kMain ||
         (demand.type == ContainerType::kSidecar && !demand.restartable_init);
}

bool AsksForDriver(const ContainerDemand& demand) {
  const StringMap& annotations = demand.pod.annotations;
  if (const auto own = annotations.find(kContainerDriver + demand.container.str());
      own != annotations.end()) {
    return !own->second.empty();
  }
  const auto pods = annotations.find(kPodDriver);
  return IsApp(demand) && pods != annotations.end() && !pods->second.empty();
}

bool Applies(const ImplicitResource& implicit, const checkpoint::PodMeta& pod) {
  return implicit.roles.contains(pod.role) ||
         (!implicit.annotation.empty() && IsOn(pod.annotations, implicit.annotation));
}

ContainerRequest MakeRequest(const ContainerDemand& demand, const std::string& resource,
                             const std::pair<const std::string, double>& asked,
                             const AdmissionOptions& options) {
  const std::string& requested = asked.first;
  std::map<std::string, double> requests = {asked};
  if (resource == kMemory) {
    std::copy_if(demand.requests.begin(), demand.requests.end(),
                 std::inserter(requests, requests.end()),
                 [](const auto& request) { return IsHugepages(request.first); });
  }
  const double scale = ScaleOf(requested, options);
  const auto limit = demand.limits.find(requested);
  return {
      .key = demand.key(),
      .pod_namespace = demand.pod.pod_namespace,
      .pod_name = demand.pod.name,
      .type = demand.type,
      .index = demand.index,
      .pod_role = demand.pod.role,
      .pod_type = demand.pod.type,
      .resource = resource,
      .requests = std::move(requests),
      .scale = scale,
      .limit = limit == demand.limits.end() ? std::nullopt : std::optional(limit->second * scale),
      .labels = demand.pod.labels,
      .annotations = demand.pod.annotations,
      .native_qos_class = demand.pod.qos_class,
      .runtime_class = demand.runtime_class};
}

const std::string& PluginNameOf(const std::string& requested, const AdmissionOptions& options) {
  const auto mapped = options.resource_names.find(requested);
  return mapped == options.resource_names.end() ? requested : mapped->second.plugin;
}

double ScaleOf(const std::string& requested, const AdmissionOptions& options) {
  const auto mapped = options.resource_names.find(requested);
  return mapped == options.resource_names.end() ? 1 : mapped->second.scale;
}

namespace {

using rules::QosLevel;
using rules::QosRequest;

std::string QosKey(const char* level) {
  return fmt::format("annotation katalyst.kubewharf.io/qos_level={}", level);
}

std::string RoleKey(const ContainerDemand& demand) {
  const std::string key = demand.role_key.empty() ? "its role" : demand.role_key;
  return fmt::format("{}={}", key, Quoted(demand.pod.role));
}

void AddQosWishes(const QosRequest& qos, std::vector<Wish>& wishes) {
  if (qos.level == QosLevel::kSystem) {
    wishes.push_back({.feature = Feature::kReservedCpus, .key = QosKey("system_cores")});
  }
  if (qos.level == QosLevel::kDedicated) {
    wishes.push_back({.feature = Feature::kOwnCpus, .key = QosKey("dedicated_cores")});
  }
  if (qos.numa_exclusive) {
    wishes.push_back(
        {.feature = Feature::kNumaNodes,
         .key = "numa_exclusive of annotation katalyst.kubewharf.io/memory_enhancement"});
  }
  if (!qos.cpuset_pool.empty()) {
    wishes.push_back({.feature = Feature::kPool,
                      .name = qos.cpuset_pool,
                      .key = "cpuset_pool of annotation katalyst.kubewharf.io/cpu_enhancement"});
  }
}

bool IsNative(const std::string& resource, const AdmissionOptions& options) {
  const std::vector<std::string>& natives = options.native_resources;
  return std::find(natives.begin(), natives.end(), resource) != natives.end() ||
         IsHugepages(resource);
}

StatusOr<std::vector<Wish>> WishesOf(const ContainerDemand& demand,
                                     const AdmissionOptions& options) {
  std::vector<Wish> wishes;
  if (WishesToOptOut(demand, options)) {
    wishes.push_back({.feature = Feature::kOptOut, .key = "annotation " + options.skip_annotation});
  }
  QRM_ASSIGN_OR_RETURN(const QosRequest qos, rules::ParseQosAnnotations(demand.pod.annotations));
  AddQosWishes(qos, wishes);
  if (!demand.pod.role.empty()) {
    wishes.push_back({.feature = Feature::kRole, .name = demand.pod.role, .key = RoleKey(demand)});
  }
  return wishes;
}

/// Why a container has exclusive CPUs: a rule of the cpu plugin, its role, or its QoS class.
std::string ReasonOf(const ContainerDemand& demand, const ResourceAllocation& own) {
  if (own.decided_by.starts_with("rules[")) {
    return own.decided_by;
  }
  return demand.pod.role.empty() ? "its QoS class " + demand.pod.qos_class : RoleKey(demand);
}

}  // namespace

Status CheckWishes(const ContainerDemand& demand, const std::map<std::string, double>& requests,
                   const AdmissionOptions& options) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Wish> wishes, WishesOf(demand, options));
  for (const Wish& wish : wishes) {
    QRM_RETURN_IF_ERROR(options.permissions.Check(demand.pod.pod_namespace, wish));
  }
  for (const auto& request : requests) {
    QRM_RETURN_IF_ERROR(CheckRequest(demand, request, options));
  }
  return OkStatus();
}

Status CheckRequest(const ContainerDemand& demand, const std::pair<std::string, double>& request,
                    const AdmissionOptions& options) {
  const auto& [requested, amount] = request;
  const std::string& resource = PluginNameOf(requested, options);
  if (amount <= 0 || IsNative(resource, options)) {
    return OkStatus();
  }
  return options.permissions.Check(demand.pod.pod_namespace,
                                   {.feature = Feature::kResource,
                                    .name = resource,
                                    .key = demand.requests.contains(requested)
                                               ? "its request of " + requested
                                               : "implicit-resources by its role or annotation"});
}

Status CheckGiven(const ContainerDemand& demand, const AllocationByResource& allocations,
                  const AdmissionOptions& options) {
  for (const auto& [resource, allocation] : allocations) {
    if (allocation->exclusive) {
      const std::string key = ReasonOf(demand, allocation);
      QRM_RETURN_IF_ERROR(options.permissions.Check(demand.pod.pod_namespace,
                                                    {.feature = Feature::kOwnCpus, .key = key}));
    }
    if (!allocation->pool.empty()) {
      QRM_RETURN_IF_ERROR(options.permissions.Check(
          demand.pod.pod_namespace,
          {.feature = Feature::kPool, .name = allocation->pool, .key = allocation->decided_by}));
    }
    const std::vector<std::string>& keys = options.netns_annotations;
    if (std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
          return allocation->annotations.contains(key);
        })) {
      QRM_RETURN_IF_ERROR(options.permissions.Check(
          demand.pod.pod_namespace,
          {.feature = Feature::kNetworkNamespaces, .key = "its request of " + resource}));
    }
  }
  return OkStatus();
}

}  // namespace qrm::placement
