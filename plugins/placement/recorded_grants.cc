// Restores requests and grants from records.
#include "plugins/placement/recorded_grants.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "plugins/placement/requests.h"

namespace qrm::placement {

using checkpoint::ContainerRecord;
using checkpoint::PodMeta;
using checkpoint::PodRecord;

namespace {

/// The pod's name for the resource, and the requested amount.
std::pair<std::string, double> RequestedAs(const ContainerRecord& record,
                                           const std::string& resource,
                                           const AdmissionOptions& options) {
  const auto found = std::find_if(
      record.requests.begin(), record.requests.end(),
      [&](const auto& request) { return PluginNameOf(request.first, options) == resource; });
  if (found != record.requests.end()) {
    return *found;
  }
  return {resource, record.allocations.at(resource)->quantity};
}

/// The allocation at the admission; null unless a reconcile changed the amounts since.
std::shared_ptr<const ResourceAllocation> AdmittedOf(const ContainerRecord& record,
                                                     const std::string& resource) {
  const auto origin = record.origins.find(resource);
  const std::optional<checkpoint::Amounts> amounts =
      origin == record.origins.end() ? std::nullopt : origin->second.admitted;
  if (!amounts.has_value()) {
    return nullptr;
  }
  ResourceAllocation admitted = record.allocations.at(resource);
  admitted.quantity = amounts->quantity;
  admitted.amount_by_node = amounts->by_node;
  return std::make_shared<const ResourceAllocation>(std::move(admitted));
}

}  // namespace

ContainerDemand RecordedDemand(const PodMeta& pod, const SharedText& name,
                               const ContainerRecord& record) {
  ContainerDemand demand{.pod = pod,
                         .container = name,
                         .type = record.type,
                         .index = record.index,
                         .restartable_init = record.restartable_init,
                         .requests = record.requests,
                         .limits = record.limits,
                         .source = record.request_source,
                         .runtime_class = record.runtime_class};
  const auto is_none = [](const auto& request) { return request.second <= 0; };
  if (std::any_of(demand.requests.begin(), demand.requests.end(), is_none)) {
    std::erase_if(demand.requests.Edit(), is_none);
  }
  return demand;
}

sdk::Grant RecordedGrant(const PodMeta& pod, const std::string& name, const ContainerRecord& record,
                         const std::string& resource, const AdmissionOptions& options) {
  const ContainerDemand demand = RecordedDemand(pod, name, record);
  const auto [requested, amount] = RequestedAs(record, resource, options);
  const ResourceAllocation& given = record.allocations.at(resource);
  sdk::Grant grant{.request = MakeRequest(demand, resource, {requested, amount}, options),
                   .allocation = given,
                   .admitted = AdmittedOf(record, resource)};
  if (given.hints.has_value() && !given.hints->empty()) {
    grant.request.hint = given.hints->front();
  }
  return grant;
}

sdk::Grants RecordedGrants(const checkpoint::NodeState& state, const std::string& resource,
                           const AdmissionOptions& options) {
  sdk::Grants grants;
  state.ForEachPod([&](const PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      if (Holds(*record, resource)) {
        grants.emplace_hint(grants.end(), ContainerKey{pod.meta.uid, name},
                            RecordedGrant(pod.meta, name, *record, resource, options));
      }
    }
  });
  return grants;
}

bool Holds(const ContainerRecord& record, const std::string& resource) {
  return record.allocations.contains(resource) && record.PluginOf(resource) == resource;
}

}  // namespace qrm::placement
