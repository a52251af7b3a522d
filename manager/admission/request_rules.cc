// Implements the rules that skip containers or give them more than they request.
#include "manager/admission/request_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "manager/admission/driver_step.h"
#include "manager/admission/explanation.h"
#include "manager/drivers/driver_choice.h"
#include "manager/registry/plugins.h"
#include "plugins/placement/requests.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::manager {
namespace {

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A container's request under one name.
struct Ask {
  const std::string& requested;  ///< the pod's name for it
  const std::string& resource;   ///< the plugin's name for it
  double amount = 0;
  std::optional<double> limit;
};

Ask AskOf(const placement::ContainerDemand& demand, const std::string& requested, double amount,
          const placement::AdmissionOptions& options) {
  const auto limit = demand.limits.find(requested);
  return {requested, placement::PluginNameOf(requested, options), amount,
          limit == demand.limits.end() ? std::nullopt : std::optional(limit->second)};
}

/// Whether `record` is for another request than `ask`, or its allocation has lost something since.
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

/// Whether `record` covers `ask`: it is for the same request, or allocates as much.
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

/// Such a container may be a plugin itself.
bool RunsWithoutPlugins(const placement::ContainerDemand& demand,
                        const placement::AdmissionOptions& options) {
  return Has(options.plugin_namespaces, demand.pod.pod_namespace);
}

/// Whether the allocation of `resource` in `record` cannot change while the container runs:
/// variables, mounts and devices are set at creation. Variables beside a cpuset only describe it,
/// and are updated when the container is recreated.
bool IsFixed(const checkpoint::ContainerRecord& record, const std::string& resource) {
  const auto given = record.allocations.find(resource);
  if (given == record.allocations.end()) {
    return false;
  }
  const ResourceAllocation& allocation = given->second;
  return (!allocation.envs.empty() && allocation.oci_property != kCpusetCpus) ||
         !allocation.annotations.empty() || !allocation.mounts.empty() ||
         !allocation.devices.empty();
}

/// Whether `resource` is the CPUs and a compute driver chose those of `record`: no plugin is asked
/// for more, and the driver only if it changes the CPUs of running containers.
bool IsDrivers(const checkpoint::ContainerRecord& record, const std::string& resource) {
  return resource == kCpuResource && IsDriversRecord(record);
}

/// Whether the compute driver that placed the container of `record` is asked to change its CPUs.
bool MayResize(const checkpoint::ContainerRecord& record, const Plugins& plugins) {
  const std::optional<PluginInfo> driver = plugins.Find(DriverOf(record.allocations));
  return driver.has_value() && driver->options.resizes;
}

bool IsAskedFor(const Draft& draft, const std::string& resource) {
  return Has(draft.explanation.kept, resource) ||
         std::any_of(draft.requests.begin(), draft.requests.end(),
                     [&](const ContainerRequest& other) { return other.resource == resource; });
}

bool KeepsFromRecord(Draft& draft, const std::string& name, double amount,
                     const placement::AdmissionOptions& options) {
  const Ask ask = AskOf(draft.demand, name, amount, options);
  const std::string& resource = ask.resource;
  const bool satisfied = Satisfies(*draft.known, ask);
  const bool is_fixed = draft.explanation.after_the_fact && IsFixed(*draft.known, resource);
  if (!satisfied && !IsDrivers(*draft.known, resource) && !is_fixed) {
    return false;
  }
  if (draft.known->allocations.contains(resource)) {
    draft.explanation.kept.push_back(resource);
  }
  if (!satisfied) {
    draft.fixed.push_back(name);
  }
  return true;
}

}  // namespace

void NoteIgnoredKeys(const checkpoint::PodMeta& pod, rules::NodeBinding binding,
                     AdmissionEvent& event) {
  std::vector<std::string> texts;
  for (rules::IgnoredQosKey& key : rules::IgnoredQosKeys(pod.annotations, binding)) {
    event.ignored_keys.push_back(key.label);
    texts.push_back(std::move(key.text));
  }
  if (!texts.empty()) {
    event.warnings.push_back(
        {.pod_namespace = pod.pod_namespace,
         .pod_name = pod.name,
         .pod_uid = pod.uid,
         .message =
             fmt::format("these keys of the pod's QoS annotations have no effect: {}; remove "
                         "or correct them",
                         fmt::join(texts, ", ")),
         .reason = "AnnotationIgnored"});
  }
}

bool NeedsPlugin(const std::string& resource, const placement::AdmissionOptions& options,
                 const Plugins& plugins) {
  if (Has(options.required_plugins, resource)) {
    return true;
  }
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  return plugin.has_value() && (plugin->registered_by != RegisteredBy::kCheckpoint ||
                                !Has(options.native_resources, resource));
}

std::vector<std::string> NeededNatives(const placement::AdmissionOptions& options,
                                       const Plugins& plugins) {
  std::vector<std::string> needed;
  std::copy_if(
      options.native_resources.begin(), options.native_resources.end(), std::back_inserter(needed),
      [&](const std::string& resource) { return NeedsPlugin(resource, options, plugins); });
  return needed;
}

Status PluginAway(const std::string& resource, const placement::ContainerDemand& demand,
                  const placement::AdmissionOptions& options, const Plugins& plugins) {
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

bool Lacks(const checkpoint::ContainerRecord& record, const std::string& resource,
           const placement::AdmissionOptions& options) {
  const auto is_meant = [&](const auto& request) {
    return request.second > 0 && placement::PluginNameOf(request.first, options) == resource;
  };
  return !record.allocations.contains(resource) &&
         (Has(options.native_resources, resource) ||
          std::any_of(record.requests.begin(), record.requests.end(), is_meant));
}

// An amount of 1 of a resource that applies to the pod. If the pod's spec requests the same amount
// itself, the result is the same.
std::vector<std::string> ImplicitRequests(const checkpoint::PodMeta& pod,
                                          const checkpoint::ContainerRecord& record,
                                          const placement::AdmissionOptions& options) {
  std::vector<std::string> resources;
  for (const placement::ImplicitResource& implicit : options.implicit_resources) {
    const auto request = record.requests.find(implicit.resource);
    if (request != record.requests.end() && request->second == 1 &&
        placement::Applies(implicit, pod)) {
      resources.push_back(implicit.resource);
    }
  }
  return resources;
}

Status SelectPlugin(Draft& draft, const std::string& name, double amount,
                    const placement::AdmissionOptions& options, const Plugins& plugins) {
  const std::string& resource = placement::PluginNameOf(name, options);
  if (!NeedsPlugin(resource, options, plugins)) {
    draft.explanation.unserved.push_back(name);
    return OkStatus();
  }
  draft.failed_resource = resource;
  if (resource != name) {
    draft.explanation.mapped[name] = resource;
    draft.explanation.scales[name] = placement::ScaleOf(name, options);
  }
  if (IsAskedFor(draft, resource)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it requests {} under two names: resource-names-map maps {} to it, too; request "
                  "only one of them",
                  resource, name);
  }
  if (draft.known != nullptr && KeepsFromRecord(draft, name, amount, options)) {
    return OkStatus();
  }
  if (draft.known != nullptr && !draft.known->allocations.contains(resource)) {
    QRM_RETURN_IF_ERROR(CheckRequest(draft.demand, {name, amount}, options));
  }
  const std::optional<PluginInfo> plugin = plugins.Find(resource);
  if (!plugin.has_value() || !plugin->live) {
    draft.explanation.awaited.push_back(name);
    return RunsWithoutPlugins(draft.demand, options)
               ? OkStatus()
               : PluginAway(resource, draft.demand, options, plugins);
  }
  if (plugin->options.with_topology_alignment) {
    draft.aligned.insert(resource);
  }
  draft.requests.push_back(MakeRequest(draft.demand, resource, {name, amount}, options));
  draft.requests.back().for_whole_pod = draft.is_whole_pod;
  if (draft.explanation.after_the_fact) {
    draft.requests.back().runs_on = draft.demand.cpus;
    draft.requests.back().runs_near = draft.demand.mems;
  }
  return OkStatus();
}

// Only for new containers: recorded allocations stay if required-plugins changes.
Status CheckRequired(Draft& draft, const placement::AdmissionOptions& options,
                     const Plugins& plugins) {
  for (const std::string& resource : options.required_plugins) {
    const std::optional<PluginInfo> plugin = plugins.Find(resource);
    const bool live = plugin.has_value() && plugin->live;
    if (!live && !RunsWithoutPlugins(draft.demand, options)) {
      draft.failed_resource = resource;
      return PluginAway(resource, draft.demand, options, plugins);
    }
  }
  return OkStatus();
}

Difference Compare(const checkpoint::ContainerRecord& record,
                   const placement::ContainerDemand& demand,
                   const placement::AdmissionOptions& options, const Plugins& plugins) {
  Difference difference;
  if (!ReasonToSkip(demand, options).empty()) {
    return difference;
  }
  for (const auto& [name, amount] : AllRequests(demand, options, NeededNatives(options, plugins))) {
    const Ask ask = AskOf(demand, name, amount, options);
    if (!NeedsPlugin(ask.resource, options, plugins) || !Differs(record, ask) ||
        Satisfies(record, ask)) {
      continue;
    }
    const bool is_drivers = IsDrivers(record, ask.resource);
    if (is_drivers ? MayResize(record, plugins) : !IsFixed(record, ask.resource)) {
      difference.asks = true;
      difference.asks_driver = difference.asks_driver || is_drivers;
    } else if (const auto before = record.requests.find(name);
               before == record.requests.end() || before->second < amount) {
      difference.when_remade.push_back(name);
    }
  }
  return difference;
}

}  // namespace qrm::manager
