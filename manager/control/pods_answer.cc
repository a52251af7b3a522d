// Lists pods with their containers: recorded ones, and running ones without a record.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "manager/control/control_answers.h"
#include "manager/state/pod_selector.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::DecisionTrace;
using checkpoint::NodeState;
using checkpoint::PodRecord;
using nlohmann::json;

void FillAllocation(const std::string& resource, const ResourceAllocation& allocation,
                    v1::Allocation& message) {
  message.set_resource_name(resource);
  message.set_oci_property(allocation.oci_property);
  message.set_value(allocation.value);
  message.set_quantity(allocation.quantity);
  message.set_exclusive(allocation.exclusive);
  message.set_may_share(allocation.may_share);
  message.set_shares(allocation.shares);
  message.set_shares_of(allocation.shares_of);
  message.mutable_envs()->insert(allocation.envs.begin(), allocation.envs.end());
  message.mutable_annotations()->insert(allocation.annotations.begin(),
                                        allocation.annotations.end());
  message.mutable_amount_by_node()->insert(allocation.amount_by_node.begin(),
                                           allocation.amount_by_node.end());
  for (const Mount& mount : allocation.mounts) {
    v1::Mount& mount_message = *message.add_mounts();
    mount_message.set_container_path(mount.container_path);
    mount_message.set_host_path(mount.host_path);
    mount_message.set_read_only(mount.read_only);
  }
  for (const DeviceSpec& device : allocation.devices) {
    v1::Device& device_message = *message.add_devices();
    device_message.set_container_path(device.container_path);
    device_message.set_host_path(device.host_path);
    device_message.set_permissions(device.permissions);
  }
  for (const TopologyHint& hint : allocation.hints.value_or(std::vector<TopologyHint>{})) {
    v1::Hint& hint_message = *message.add_hints();
    hint_message.set_preferred(hint.preferred);
    for (const int node : hint.nodes) {
      hint_message.add_nodes(static_cast<uint64_t>(node));
    }
  }
}

void FillContainer(const std::string& name, const ContainerRecord& record, v1::Container& message) {
  message.set_name(name);
  message.set_type(std::string(ToString(record.type)));
  message.mutable_requests()->insert(record.requests.begin(), record.requests.end());
  message.set_request_source(record.request_source);
  message.mutable_classes()->insert(record.classes.begin(), record.classes.end());
  message.mutable_applied()->insert(record.applied.begin(), record.applied.end());
  for (const auto& [resource, allocation] : record.allocations) {
    FillAllocation(resource, allocation, *message.add_allocations());
  }
}

/// Init containers first, then app containers, then ephemeral ones, each in the order of the spec.
std::vector<std::string> ContainerNames(const PodRecord& pod) {
  const auto key = [&pod](const std::string& name) {
    const ContainerRecord& record = *pod.containers.at(name);
    const bool is_init = record.type == ContainerType::kInit || record.restartable_init;
    return std::make_tuple(!is_init, record.type == ContainerType::kEphemeral, record.index);
  };
  std::vector<std::string> names;
  names.reserve(pod.containers.size());
  for (const auto& [name, record] : pod.containers) {
    names.push_back(name);
  }
  std::stable_sort(names.begin(), names.end(),
                   [&key](const auto& a, const auto& b) { return key(a) < key(b); });
  return names;
}

/// The latest decision about each container.
using DecisionByContainer = std::map<ContainerKey, const DecisionTrace*>;

DecisionByContainer LatestOf(const Decisions& decisions) {
  DecisionByContainer latest;
  for (const DecisionTrace& trace : decisions) {
    latest[trace.key] = &trace;
  }
  return latest;
}

/// "cpu by static, memory by nearest".
std::string PlacedBy(const json& decision) {
  std::vector<std::string> by;
  const json allocations = decision.value("allocations", json::object());
  for (const auto& [resource, given] : allocations.items()) {
    const auto rule = given.is_object() ? given.find("decided_by") : given.end();
    if (given.is_object() && rule != given.end() && rule->is_string()) {
      by.push_back(fmt::format("{} by {}", resource, rule->get<std::string>()));
    }
  }
  return fmt::format("{}", fmt::join(by, ", "));
}

/// Adds since when the container is as it is, and for an admitted one by what it was placed.
void FillSince(const DecisionByContainer& latest, const ContainerKey& key,
               v1::Container& container) {
  const auto found = latest.find(key);
  if (found == latest.end()) {
    return;
  }
  container.set_since_unix_millis(UnixMillis(found->second->time));
  const json decision = json::parse(found->second->json, nullptr, /*allow_exceptions=*/false);
  if (!decision.is_object()) {
    return;
  }
  if (const auto first = decision.find("first_unix_millis");
      first != decision.end() && first->is_number_integer()) {
    container.set_since_unix_millis(first->get<int64_t>());
  }
  if (container.why().empty() && found->second->admitted) {
    container.set_why(PlacedBy(decision));
  }
}

/// The state of a recorded container, and why.
std::pair<const char*, std::string> StateOf(const ContainerRecord& record,
                                            const ContainerRemarks& remarks, bool runs) {
  if (!remarks.class_problems.empty()) {
    return {"incomplete", fmt::format("{}", fmt::join(remarks.class_problems, "; "))};
  }
  if (!record.skipped.empty()) {
    return {"skipped", record.skipped};
  }
  if (!remarks.rejected.empty()) {
    return {"incomplete", remarks.rejected};
  }
  if (!remarks.runs_without.empty()) {
    return {"incomplete",
            fmt::format("it was created without {}; delete the pod to have it recreated",
                        fmt::join(remarks.runs_without, ", "))};
  }
  if (!remarks.pending.empty()) {
    return {"pending", remarks.pending};
  }
  if (const auto cpus = record.allocations.find("cpu");
      runs && cpus != record.allocations.end() && cpus->second->value.empty()) {
    return {"unpinned", "the cpu plugin sets no CPUs for it (leave-alone)"};
  }
  return {runs ? "admitted" : "not running", ""};
}

void FillPod(const PodRecord& pod, const RuntimeIdSource& runtime_id_of,
             const RemarksSource& remarks_of, const DecisionByContainer& latest, v1::Pod& message) {
  message.set_uid(pod.meta.uid);
  message.set_namespace_(pod.meta.pod_namespace);
  message.set_name(pod.meta.name);
  message.set_role(pod.meta.role);
  message.set_type(pod.meta.type);
  message.set_qos_class(pod.meta.qos_class);
  message.mutable_labels()->insert(pod.meta.labels.begin(), pod.meta.labels.end());
  for (const std::string& name : ContainerNames(pod)) {
    const ContainerKey key{.pod_uid = pod.meta.uid, .container = name};
    const ContainerRecord& record = *pod.containers.at(name);
    v1::Container& container = *message.add_containers();
    FillContainer(name, record, container);
    container.set_runtime_id(runtime_id_of(key));
    const ContainerRemarks remarks = remarks_of ? remarks_of(pod, name) : ContainerRemarks();
    for (const std::string& resource : remarks.implicit_requests) {
      (*container.mutable_request_sources())[resource] = "configuration";
    }
    container.set_pending(remarks.pending);
    container.set_unapplied(remarks.unapplied);
    *container.mutable_runs_without() = {remarks.runs_without.begin(), remarks.runs_without.end()};
    if (remarks_of) {
      const auto [state, why] = StateOf(record, remarks, !container.runtime_id().empty());
      container.set_state(state);
      container.set_why(why);
    }
    FillSince(latest, key, container);
  }
}

void FillUnplaced(const UnplacedContainer& unplaced, const DecisionByContainer& latest,
                  v1::Container& container) {
  container.set_name(unplaced.key.container);
  container.set_runtime_id(unplaced.runtime_id);
  container.set_state(unplaced.state == UnplacedState::kSkipped ? "skipped" : "unpinned");
  container.set_why(unplaced.why);
  FillSince(latest, unplaced.key, container);
}

/// Adds the containers of `unplaced` that have no record, to the messages of their pods.
void AddUnplaced(const NodeState& state, const std::string& selector,
                 const std::vector<UnplacedContainer>& unplaced, const DecisionByContainer& latest,
                 v1::ListPodsResponse& response) {
  std::map<std::string, v1::Pod*> pods;
  for (v1::Pod& pod : *response.mutable_pods()) {
    pods[pod.uid()] = &pod;
  }
  for (const UnplacedContainer& container : unplaced) {
    const ContainerKey& key = container.key;
    if (state.Find(key) != nullptr ||
        (!selector.empty() &&
         !manager::IsMeant(selector, {key.pod_uid, container.pod_namespace, container.pod_name}))) {
      continue;
    }
    v1::Pod*& pod = pods[key.pod_uid];
    if (pod == nullptr) {
      pod = response.add_pods();
      pod->set_uid(key.pod_uid);
      pod->set_namespace_(container.pod_namespace);
      pod->set_name(container.pod_name);
    }
    FillUnplaced(container, latest, *pod->add_containers());
  }
}

}  // namespace

v1::ForgetPluginResponse ForgetAnswer(const checkpoint::PluginRecords& records) {
  v1::ForgetPluginResponse response;
  for (const checkpoint::PluginRecords::Given& given : records.allocations) {
    v1::RecordedAllocation& message = *response.add_allocations();
    message.set_pod_uid(given.key.pod_uid);
    message.set_pod_namespace(given.pod_namespace);
    message.set_pod_name(given.pod_name);
    message.set_container(given.key.container);
    FillAllocation(given.resource, given.allocation, *message.mutable_allocation());
  }
  *response.mutable_pending_removals() = {records.pending_removals.begin(),
                                          records.pending_removals.end()};
  return response;
}

StatusOr<v1::ListPodsResponse> PodsAnswer(const NodeState& state, const std::string& selector,
                                          const RuntimeIdSource& runtime_id_of,
                                          const RemarksSource& remarks_of, const MoreOfPods& more) {
  const Decisions decisions = checkpoint::Folded(more.decisions);
  const DecisionByContainer latest = LatestOf(decisions);
  v1::ListPodsResponse response;
  state.ForEachPod([&](const PodRecord& pod) {
    if (selector.empty() ||
        manager::IsMeant(selector, {pod.meta.uid, pod.meta.pod_namespace, pod.meta.name})) {
      FillPod(pod, runtime_id_of, remarks_of, latest, *response.add_pods());
    }
  });
  AddUnplaced(state, selector, more.unplaced, latest, response);
  if (response.pods().empty() && !selector.empty()) {
    return Errorf(StatusCode::kNotFound,
                  "cannot show pod {}: no admitted pod has that name or UID; qrmctl pods lists all",
                  selector);
  }
  std::sort(response.mutable_pods()->begin(), response.mutable_pods()->end(),
            [](const v1::Pod& a, const v1::Pod& b) {
              return std::tie(a.namespace_(), a.name()) < std::tie(b.namespace_(), b.name());
            });
  return response;
}

}  // namespace qrm::manager
