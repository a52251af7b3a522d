// Defines the calls of compute drivers: their messages, service and checks.
#include "plugins/sdk/calls/compute_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "api/proto/cci/v1alpha1/cci.pb.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/call_codec.h"
#include "plugins/sdk/compute_plugin.h"
#include "plugins/sdk/plugin_driver.h"

namespace qrm::calls {
namespace {

namespace cci = ::cci::v1alpha1;
using sdk::ComputeGrant;
using sdk::ComputePlugin;
using sdk::PluginDriver;

cci::ContainerType ToWire(ContainerType type) {
  switch (type) {
    case ContainerType::kInit:
      return cci::INIT;
    case ContainerType::kSidecar:
      return cci::SIDECAR;
    default:
      return cci::APP;
  }
}

StatusOr<ContainerType> FromWire(cci::ContainerType type) {
  switch (type) {
    case cci::APP:
      return ContainerType::kMain;
    case cci::INIT:
      return ContainerType::kInit;
    case cci::SIDECAR:
      return ContainerType::kSidecar;
    default:
      return Errorf(StatusCode::kInvalidArgument, "there is no container type {}",
                    static_cast<int>(type));
  }
}

void SetHint(const TopologyHint& hint, cci::TopologyHint& message) {
  for (const int node : hint.nodes) {
    message.add_nodes(static_cast<uint64_t>(node));
  }
  message.set_preferred(hint.preferred);
}

StatusOr<TopologyHint> GetHint(const cci::TopologyHint& message) {
  TopologyHint hint{.nodes = {}, .preferred = message.preferred()};
  for (const uint64_t node : message.nodes()) {
    if (node >= NumaMask::kMaxIds) {
      return Errorf(StatusCode::kInvalidArgument, "there is no NUMA node {}", node);
    }
    hint.nodes |= NumaMask{static_cast<int>(node)};
  }
  return hint;
}

Status CheckKey(const ContainerKey& key) {
  if (!key.pod_uid.empty() && !key.container.empty()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "pod_uid \"{}\" and container \"{}\" must both be set", key.pod_uid, key.container);
}

}  // namespace

template <>
struct Codec<ComputeAdmit> {
  using Message = cci::AdmitRequest;
  using Response = cci::AdmitResponse;

  static Message ToWire(const sdk::ComputeRequest& request) {
    Message message;
    message.set_availablecpus(ToString(request.available));
    message.set_pod(request.pod_name);
    message.set_container(request.key.container);
    message.set_cci_spec(request.spec);
    message.set_pod_uid(request.key.pod_uid);
    message.set_pod_namespace(request.pod_namespace);
    message.set_shared_cpus(ToString(request.shared));
    message.set_reserved_cpus(ToString(request.reserved));
    message.set_current_cpus(ToString(request.current));
    SetHint(request.hint, *message.mutable_hint());
    message.set_requested_milli_cpus(request.milli_cpus);
    message.set_container_type(calls::ToWire(request.type));
    message.mutable_pod_annotations()->insert(request.annotations.begin(),
                                              request.annotations.end());
    message.mutable_pod_labels()->insert(request.labels.begin(), request.labels.end());
    message.mutable_requests()->insert(request.requests.begin(), request.requests.end());
    message.mutable_limits()->insert(request.limits.begin(), request.limits.end());
    message.set_qos_class(request.qos_class);
    message.set_runtime_class(request.runtime_class);
    for (const auto& [resource, nodes] : request.device_nodes) {
      (*message.mutable_device_nodes())[resource] = ToString(nodes);
    }
    for (const sdk::MemoryNode& node : request.memory_nodes) {
      cci::MemoryNode& added = *message.add_memory_nodes();
      added.set_node(static_cast<uint64_t>(node.node));
      added.set_kind(node.kind);
      added.set_bytes(node.bytes);
      added.set_free_bytes(node.free_bytes);
    }
    return message;
  }
  static StatusOr<sdk::ComputeRequest> FromWire(const Message& message) {
    sdk::ComputeRequest request{
        .key = {message.pod_uid(), message.container()},
        .pod_namespace = message.pod_namespace(),
        .pod_name = message.pod(),
        .spec = message.cci_spec(),
        .milli_cpus = message.requested_milli_cpus(),
        .annotations = {message.pod_annotations().begin(), message.pod_annotations().end()},
        .labels = {message.pod_labels().begin(), message.pod_labels().end()},
        .requests = {message.requests().begin(), message.requests().end()},
        .limits = {message.limits().begin(), message.limits().end()},
        .qos_class = message.qos_class(),
        .runtime_class = message.runtime_class()};
    QRM_RETURN_IF_ERROR(CheckKey(request.key));
    for (const auto& [resource, nodes] : message.device_nodes()) {
      QRM_ASSIGN_OR_RETURN(request.device_nodes[resource], NumaMask::Parse(nodes));
    }
    for (const cci::MemoryNode& node : message.memory_nodes()) {
      request.memory_nodes.push_back({.node = static_cast<int>(node.node()),
                                      .kind = node.kind(),
                                      .bytes = node.bytes(),
                                      .free_bytes = node.free_bytes()});
    }
    QRM_ASSIGN_OR_RETURN(request.type, calls::FromWire(message.container_type()));
    QRM_ASSIGN_OR_RETURN(request.available, CpuSet::Parse(message.availablecpus()));
    QRM_ASSIGN_OR_RETURN(request.shared, CpuSet::Parse(message.shared_cpus()));
    QRM_ASSIGN_OR_RETURN(request.reserved, CpuSet::Parse(message.reserved_cpus()));
    QRM_ASSIGN_OR_RETURN(request.current, CpuSet::Parse(message.current_cpus()));
    QRM_ASSIGN_OR_RETURN(request.hint, GetHint(message.hint()));
    return request;
  }
  static StatusOr<ComputeGrant> Serve(PluginDriver& driver, const sdk::ComputeRequest& request) {
    return ComputePlugin::Admit(driver, request);
  }
  static Response AnswerToWire(const ComputeGrant& grant) { return sdk::ToWire(grant); }
  static StatusOr<ComputeGrant> AnswerFromWire(const Response& response) {
    return sdk::FromWire(response);
  }
  static Status Check(const ComputeGrant& grant, const NumaMask& machine_nodes) {
    return CheckHints({{.nodes = grant.mems}}, machine_nodes);
  }
};
template class CallTo<ComputeAdmit>;

template <>
struct Codec<ComputeHints> : Codec<ComputeAdmit> {
  using Response = cci::HintsResponse;

  static StatusOr<HintList> Serve(PluginDriver& driver, const sdk::ComputeRequest& request) {
    return ComputePlugin::GetHints(driver, request);
  }
  static Response AnswerToWire(const HintList& list) {
    Response response;
    if (list.IsImpossible()) {
      response.set_err("no NUMA node can serve the request");
    }
    for (const TopologyHint& hint : list.hints()) {
      SetHint(hint, *response.add_hints());
    }
    return response;
  }
  static StatusOr<HintList> AnswerFromWire(const Response& response) {
    std::vector<TopologyHint> hints;
    for (const cci::TopologyHint& hint : response.hints()) {
      QRM_ASSIGN_OR_RETURN(hints.emplace_back(), GetHint(hint));
    }
    return hints.empty() ? HintList::NoPreference() : HintList(std::move(hints));
  }
  static Status Check(const HintList& list, const NumaMask& machine_nodes) {
    return CheckHints(list.hints(), machine_nodes);
  }
};
template class CallTo<ComputeHints>;

template <>
struct Codec<ComputeAdd> {
  using Response = cci::AddResourceResponse;
  using Message = cci::AddResourceRequest;

  static Message ToWire(const sdk::ComputeInstance& instance) {
    Message message;
    message.set_cgroup(instance.cgroup);
    message.set_pod(instance.pod_name);
    message.set_container(instance.key.container);
    message.set_container_id(instance.container_id);
    message.set_pod_uid(instance.key.pod_uid);
    message.set_pod_namespace(instance.pod_namespace);
    message.set_cpuset(ToString(instance.cpus));
    return message;
  }
  static StatusOr<sdk::ComputeInstance> FromWire(const Message& message) {
    sdk::ComputeInstance instance{.key = {message.pod_uid(), message.container()},
                                  .pod_namespace = message.pod_namespace(),
                                  .pod_name = message.pod(),
                                  .container_id = message.container_id(),
                                  .cgroup = message.cgroup()};
    QRM_RETURN_IF_ERROR(CheckKey(instance.key));
    QRM_ASSIGN_OR_RETURN(instance.cpus, CpuSet::Parse(message.cpuset()));
    return instance;
  }
  static Status Serve(PluginDriver& driver, const sdk::ComputeInstance& instance) {
    return ComputePlugin::Add(driver, instance);
  }
};
template class CallTo<ComputeAdd>;

template <>
struct Codec<ComputeRemove> {
  using Response = cci::RemoveResourceResponse;
  using Message = cci::RemoveResourceRequest;

  static Message ToWire(const sdk::ComputeRemoval& removal) {
    Message message;
    message.set_container_id(removal.container_id);
    message.set_pod_uid(removal.key.pod_uid);
    message.set_container(removal.key.container);
    return message;
  }
  static StatusOr<sdk::ComputeRemoval> FromWire(const Message& message) {
    return sdk::ComputeRemoval{.key = {message.pod_uid(), message.container()},
                               .container_id = message.container_id()};
  }
  static Status Serve(PluginDriver& driver, const sdk::ComputeRemoval& removal) {
    return ComputePlugin::Remove(driver, removal);
  }
};
template class CallTo<ComputeRemove>;

template <>
struct Codec<ComputeOptions> {
  using Message = cci::OptionsRequest;
  using Response = cci::OptionsResponse;

  static StatusOr<PluginOptions> Serve(const PluginDriver& driver) { return driver.options(); }
  static Response AnswerToWire(const PluginOptions& options) {
    Response response;
    response.set_needs_add(options.pre_start_required);
    response.set_resizes(options.resizes);
    response.set_gives_hints(options.with_topology_alignment);
    return response;
  }
  static StatusOr<PluginOptions> AnswerFromWire(const Response& response) {
    return PluginOptions{.pre_start_required = response.needs_add() || response.resizes(),
                         .with_topology_alignment = response.gives_hints(),
                         .resizes = response.resizes()};
  }
};
template class CallTo<ComputeOptions>;

std::vector<ServedCall> ComputeCalls() {
  return {Served<ComputeAdmit>(), Served<ComputeHints>(), Served<ComputeAdd>(),
          Served<ComputeRemove>(), Served<ComputeOptions>()};
}

}  // namespace qrm::calls
