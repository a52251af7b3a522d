// Turns records back into the requests and grants that they came from.
#include "manager/state/recorded_grants.h"

#include <memory>
#include <utility>

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::PodMeta;
using checkpoint::PodRecord;

namespace {

/// What the pod calls the resource, and how much of it was requested.
std::pair<std::string, double> RequestedAs(const ContainerRecord& record,
                                           const std::string& resource,
                                           const StringMap& resource_names) {
  for (const auto& [name, amount] : record.requests) {
    const auto mapped = resource_names.find(name);
    if ((mapped == resource_names.end() ? name : mapped->second) == resource) {
      return {name, amount};
    }
  }
  return {resource, record.allocations.at(resource).quantity};
}

/// What was given at the admission, where a reconcile changed the amounts since.
std::shared_ptr<const ResourceAllocation> AdmittedOf(const ContainerRecord& record,
                                                     const std::string& resource) {
  const auto origin = record.origins.find(resource);
  if (origin == record.origins.end() || !origin->second.admitted.has_value()) {
    return nullptr;
  }
  ResourceAllocation admitted = record.allocations.at(resource);
  admitted.quantity = origin->second.admitted->quantity;
  admitted.amount_by_node = origin->second.admitted->by_node;
  return std::make_shared<const ResourceAllocation>(std::move(admitted));
}

}  // namespace

ContainerRequest RecordedRequest(const PodMeta& pod, const std::string& container,
                                 const ContainerRecord& record, const std::string& resource,
                                 const StringMap& resource_names) {
  ContainerRequest request = {.key = {pod.uid, container},
                              .pod_namespace = pod.pod_namespace,
                              .pod_name = pod.name,
                              .type = record.type,
                              .index = record.index,
                              .pod_role = pod.role,
                              .pod_type = pod.type,
                              .resource = resource,
                              .requests = {RequestedAs(record, resource, resource_names)},
                              .labels = pod.labels,
                              .annotations = pod.annotations,
                              .native_qos_class = pod.qos_class,
                              .runtime_class = record.runtime_class};
  const ResourceAllocation& given = record.allocations.at(resource);
  if (given.hints.has_value() && !given.hints->empty()) {
    request.hint = given.hints->front();
  }
  return request;
}

sdk::Grants RecordedGrants(const checkpoint::NodeState& state, const std::string& resource,
                           const StringMap& resource_names) {
  sdk::Grants grants;
  state.ForEachPod([&](const PodRecord& pod) {
    for (const auto& [container, record] : pod.containers) {
      const auto given = record->allocations.find(resource);
      if (given == record->allocations.end() || record->PluginOf(resource) != resource) {
        continue;
      }
      ContainerRequest request =
          RecordedRequest(pod.meta, container, *record, resource, resource_names);
      const ContainerKey key = request.key;
      grants.emplace_hint(grants.end(), key,
                          sdk::Grant{.request = std::move(request),
                                     .allocation = given->second,
                                     .admitted = AdmittedOf(*record, resource)});
    }
  });
  return grants;
}

}  // namespace qrm::manager
