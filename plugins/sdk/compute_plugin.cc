// Keeps a driver's grants as grants of a resource plugin.
#include "plugins/sdk/compute_plugin.h"

#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "api/base/errorf.h"
#include "api/proto/cci/v1alpha1/cci.pb.h"
#include "plugins/sdk/compute_wire.h"

namespace qrm::sdk {
namespace {

/// The annotation of an allocation that has the driver's whole answer as JSON.
constexpr char kAnswer[] = "cci.qrm.io/answer";
constexpr double kMilli = 1000;

/// Calls `question` with the driver in `host`.
template <typename Question>
auto AskDriver(PluginDriver& host, const char* function, const Question& question)
    -> decltype(question(std::declval<ComputePlugin&>())) {
  return host.Ask(
      function, [&](ResourcePlugin& plugin) -> decltype(question(std::declval<ComputePlugin&>())) {
        auto* const driver = dynamic_cast<ComputePlugin*>(&plugin);
        if (driver == nullptr) {
          return Errorf(StatusCode::kUnimplemented,
                        "it is not a compute driver; register it as a resource plugin");
        }
        return question(*driver);
      });
}

/// Grants that the manager no longer has on record: it offers their CPUs to another container.
std::vector<ContainerKey> Overtaken(const PluginDriver& host, const ComputeRequest& request) {
  std::vector<ContainerKey> keys;
  for (const auto& [key, grant] : host.grants()) {
    const StatusOr<ComputeGrant> given = GrantOf(grant.allocation);
    const bool of_other_pod =
        key.pod_uid != request.key.pod_uid;  // init containers lend their CPUs
    if (of_other_pod && given.ok() &&
        (given->Cpus() | given->Idle()).Intersects(request.available)) {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace

ResourceAllocation ToAllocation(const ComputeGrant& grant) {
  std::string json;
  // Only messages with an Any can fail to be written.
  (void)google::protobuf::util::MessageToJsonString(ToWire(grant), &json);
  return {.oci_property = std::string(kCpusetCpus),
          .value = ToString(grant.Cpus()),
          .is_scalar_resource = true,
          .quantity = static_cast<double>(grant.Cpus().Count()),
          .annotations = {{kAnswer, json}},
          .exclusive = true};
}

StatusOr<ComputeGrant> GrantOf(const ResourceAllocation& allocation) {
  const auto answer = allocation.annotations.find(kAnswer);
  ::cci::v1alpha1::AdmitResponse message;
  if (answer == allocation.annotations.end() ||
      !google::protobuf::util::JsonStringToMessage(answer->second, &message).ok()) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot read the driver's recorded grant; move its state aside and restart it");
  }
  return FromWire(message);
}

StatusOr<ComputeGrant> ComputePlugin::Admit(PluginDriver& host, const ComputeRequest& request) {
  for (const ContainerKey& key : Overtaken(host, request)) {
    QRM_RETURN_IF_ERROR(Remove(host, {.key = key}));
  }
  ContainerRequest kept{.key = request.key,
                        .pod_namespace = request.pod_namespace,
                        .pod_name = request.pod_name,
                        .type = request.type,
                        .resource = host.resource(),
                        .requests = {{"cpu", static_cast<double>(request.milli_cpus) / kMilli}}};
  const auto set_asked = [&](const ComputeRequest* asked) {
    return AskDriver(host, "Admit", [asked](ComputePlugin& plugin) {
      plugin.asked_ = asked;
      return OkStatus();
    });
  };
  QRM_RETURN_IF_ERROR(set_asked(&request));
  const StatusOr<ResourceAllocation> allocation = host.Allocate(kept);
  QRM_RETURN_IF_ERROR(set_asked(nullptr));
  QRM_RETURN_IF_ERROR(allocation.status());
  return GrantOf(*allocation);
}

Status ComputePlugin::Add(PluginDriver& host, const ComputeInstance& instance) {
  return AskDriver(host, "Add",
                   [&](ComputePlugin& plugin) { return plugin.driver_.Add(instance); });
}

// The driver first: a grant that it cannot release stays on record.
Status ComputePlugin::Remove(PluginDriver& host, const ComputeRemoval& removal) {
  std::vector<ContainerKey> keys;
  for (const auto& [key, grant] : host.grants()) {
    if (key.pod_uid == removal.key.pod_uid &&
        (removal.key.container.empty() || key.container == removal.key.container)) {
      keys.push_back(key);
    }
  }
  for (const ContainerKey& key : keys) {
    QRM_RETURN_IF_ERROR(AskDriver(
        host, "Remove", [&](ComputePlugin& plugin) { return plugin.driver_.Remove(key); }));
    QRM_RETURN_IF_ERROR(host.ReleaseContainer(key));
  }
  return OkStatus();
}

Status ComputePlugin::Restore(const Grants& grants) {
  ComputeGrants held;
  for (const auto& [key, grant] : grants) {
    QRM_ASSIGN_OR_RETURN(held[key], GrantOf(grant.allocation));
  }
  return driver_.Restore(held);
}

StatusOr<ResourceAllocation> ComputePlugin::Allocate(const ContainerRequest& /*request*/,
                                                     const TopologyHint& /*hint*/) {
  if (asked_ == nullptr) {
    return Errorf(StatusCode::kUnimplemented, "it is a compute driver; call cciAdmit");
  }
  QRM_ASSIGN_OR_RETURN(const ComputeGrant grant, driver_.Admit(*asked_));
  return ToAllocation(grant);
}

}  // namespace qrm::sdk
