// Implements the rules that skip containers or give them more than they request.
#include "manager/admission/request_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "manager/admission/admission_event.h"
#include "manager/admission/driver_step.h"
#include "manager/registry/plugins.h"
#include "plugins/placement/requests.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::manager {
namespace {

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

void NoteIgnoredKeys(const checkpoint::PodMeta& pod, AdmissionEvent& event) {
  std::vector<std::string> texts;
  for (rules::IgnoredQosKey& key : rules::IgnoredQosKeys(pod.annotations)) {
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

bool RunsWithoutPlugins(const placement::ContainerDemand& demand,
                        const placement::AdmissionOptions& options) {
  return Has(options.plugin_namespaces, demand.pod.pod_namespace);
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

Ask AskOf(const placement::ContainerDemand& demand, const std::string& requested, double amount,
          const placement::AdmissionOptions& options) {
  const auto limit = demand.limits.find(requested);
  return {requested, placement::PluginNameOf(requested, options), amount,
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

ContainerRequest MakeRequest(const placement::ContainerDemand& demand, const PluginInfo& plugin,
                             const std::string& requested, double amount,
                             const placement::AdmissionOptions& options) {
  return placement::MakeRequest(demand, plugin.resource, {requested, amount}, options);
}

}  // namespace qrm::manager
