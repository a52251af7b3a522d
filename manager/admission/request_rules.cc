// Implements the rules that skip containers or give them more than they request.
#include "manager/admission/request_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "manager/admission/driver_step.h"
#include "manager/admission/wishes.h"
#include "manager/registry/plugins.h"
#include "topology/pod_request.h"

namespace qrm::manager {
namespace {

constexpr char kMemory[] = "memory";
constexpr char kHugepages[] = "hugepages-";
constexpr char kQosLevel[] = "katalyst.kubewharf.io/qos_level";

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsOn(const StringMap& annotations, const std::string& key) {
  const auto found = annotations.find(key);
  return found != annotations.end() && !found->second.empty() && found->second != "false";
}

bool IsSystemCores(const checkpoint::PodMeta& pod) {
  const auto level = pod.annotations.find(kQosLevel);
  return level != pod.annotations.end() && level->second == "system_cores";
}

bool Applies(const ImplicitResource& implicit, const checkpoint::PodMeta& pod) {
  return implicit.roles.contains(pod.role) ||
         (!implicit.annotation.empty() && IsOn(pod.annotations, implicit.annotation));
}

}  // namespace

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
        kQosLevel);
  }
  return {};
}

ContainerDemand AskingForNothing(ContainerDemand demand, const checkpoint::PodRecord* placed) {
  demand.requests = {};
  demand.others.clear();
  demand.place = 0;
  if (placed != nullptr) {
    demand.pod = placed->meta;
    return demand;
  }
  demand.pod.role = {};
  demand.pod.type = {};
  demand.pod.labels = {};
  demand.pod.annotations = {};
  return demand;
}

bool NeedsPlugin(const std::string& resource, const AdmissionOptions& options,
                 const Plugins& plugins) {
  if (Has(options.required_plugins, resource)) {
    return true;
  }
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  return plugin.has_value() && (plugin->registered_by != RegisteredBy::kCheckpoint ||
                                !Has(options.native_resources, resource));
}

bool RunsWithoutPlugins(const ContainerDemand& demand, const AdmissionOptions& options) {
  return Has(options.plugin_namespaces, demand.pod.pod_namespace);
}

Status PluginAway(const std::string& resource, const ContainerDemand& demand,
                  const AdmissionOptions& options, const Plugins& plugins) {
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  const std::string own_pod =
      fmt::format("if this pod is the plugin's own, list its namespace {} in plugin-namespaces",
                  demand.pod.pod_namespace);
  if (plugin.has_value() && plugin->registered_by != RegisteredBy::kCheckpoint) {
    return Errorf(StatusCode::kUnavailable,
                  "the {} plugin at {} is not running: {}, and kubelet's next try admits the "
                  "container; {}",
                  resource, plugin->endpoint, plugin->problem, own_pod);
  }
  return Errorf(StatusCode::kUnavailable,
                "no plugin of {} has registered since qrmd started; start it and try again; if it "
                "is gone for good, {}; {}",
                resource,
                Has(options.required_plugins, resource)
                    ? fmt::format("take {} out of required-plugins", resource)
                    : fmt::format("drop its allocations with: qrmctl plugins forget {}", resource),
                own_pod);
}

std::map<std::string, double> AllRequests(const ContainerDemand& demand,
                                          const AdmissionOptions& options, const Plugins& plugins) {
  std::map<std::string, double> requests = demand.requests;
  for (const ImplicitResource& implicit : options.implicit_resources) {
    if (Applies(implicit, demand.pod)) {
      requests.emplace(implicit.resource, 1);
    }
  }
  for (const std::string& resource : options.native_resources) {
    const bool requested = std::any_of(requests.begin(), requests.end(), [&](const auto& request) {
      return PluginNameOf(request.first, options) == resource;
    });
    if (!requested && NeedsPlugin(resource, options, plugins)) {
      requests.emplace(resource, 0);
    }
  }
  return requests;
}

std::map<std::string, double> TotalRequests(const std::vector<const ContainerDemand*>& containers,
                                            const AdmissionOptions& options,
                                            const Plugins& plugins) {
  std::vector<ContainerAmounts> amounts;
  amounts.reserve(containers.size());
  for (const ContainerDemand* container : containers) {
    amounts.push_back(
        {.type = container->type, .amounts = AllRequests(*container, options, plugins)});
  }
  return PodRequest(amounts);
}

Ask AskOf(const ContainerDemand& demand, const std::string& requested, double amount,
          const AdmissionOptions& options) {
  const auto limit = demand.limits.find(requested);
  return {requested, PluginNameOf(requested, options), amount,
          limit == demand.limits.end() ? std::nullopt : std::optional(limit->second)};
}

// Except for CPUs, a container that requests less keeps its allocation: used memory cannot be taken
// away. A container that requests none keeps its allocation, too.
bool Differs(const checkpoint::ContainerRecord& record, const Ask& ask) {
  const auto given = record.allocations.find(ask.resource);
  if (ask.amount == 0) {
    return false;
  }
  if (given != record.allocations.end() && given->second->lacks > 0) {
    return true;
  }
  const auto before = record.requests.find(ask.requested);
  if (before == record.requests.end()) {
    return true;
  }
  if (ask.resource != kCpuResource) {
    return before->second < ask.amount;
  }
  const auto limit = record.limits.find(ask.requested);
  const bool same_limit = limit == record.limits.end() ? !ask.limit.has_value()
                                                       : ask.limit == std::optional(limit->second);
  return before->second != ask.amount || !same_limit;
}

bool Satisfies(const checkpoint::ContainerRecord& record, const Ask& ask) {
  const auto& [requested, resource, amount, limit] = ask;
  const auto given = record.allocations.find(resource);
  if (given == record.allocations.end()) {
    return false;
  }
  const bool is_recorded = record.requests.contains(requested);
  if (is_recorded && !Differs(record, ask)) {
    return true;
  }
  if (given->second->lacks > 0 || (is_recorded && resource == kCpuResource)) {
    return false;
  }
  // A pool's amount belongs to all containers that share it. Under another name, the pod's unit may
  // differ from the plugin's.
  const bool shared = given->second->oci_property == kCpusetCpus && !given->second->exclusive;
  return requested == resource && given->second->is_scalar_resource && !shared &&
         std::ceil(given->second->quantity) >= amount;
}

bool Lacks(const checkpoint::ContainerRecord& record, const std::string& resource,
           const AdmissionOptions& options) {
  const auto is_meant = [&](const auto& request) {
    return request.second > 0 && PluginNameOf(request.first, options) == resource;
  };
  return !record.allocations.contains(resource) &&
         (Has(options.native_resources, resource) ||
          std::any_of(record.requests.begin(), record.requests.end(), is_meant));
}

// An amount of 1 of a resource that applies to the pod. If the pod's spec requests the same amount
// itself, the result is the same.
std::vector<std::string> ImplicitRequests(const checkpoint::PodMeta& pod,
                                          const checkpoint::ContainerRecord& record,
                                          const AdmissionOptions& options) {
  std::vector<std::string> resources;
  for (const ImplicitResource& implicit : options.implicit_resources) {
    const auto request = record.requests.find(implicit.resource);
    if (request != record.requests.end() && request->second == 1 && Applies(implicit, pod)) {
      resources.push_back(implicit.resource);
    }
  }
  return resources;
}

ContainerRequest MakeRequest(const ContainerDemand& demand, const PluginInfo& plugin,
                             const std::string& requested, double amount,
                             const AdmissionOptions& options) {
  std::map<std::string, double> requests = {{requested, amount}};
  if (plugin.resource == kMemory && plugin.registered_by == RegisteredBy::kBuiltIn) {
    std::copy_if(demand.requests.begin(), demand.requests.end(),
                 std::inserter(requests, requests.end()),
                 [](const auto& request) { return request.first.rfind(kHugepages, 0) == 0; });
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
      .resource = plugin.resource,
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

}  // namespace qrm::manager
