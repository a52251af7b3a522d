// What the control API answers: pure functions from the daemon's state to messages.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/decision_log.h"
#include "checkpoint/node_state.h"
#include "checkpoint/plugin_records.h"
#include "manager/admission/dry_run_report.h"
#include "manager/observability/node_services.h"
#include "manager/registry/plugin_info.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace qrm::v1 {
class DryRunResponse;
class ExplainResponse;
class ForgetPluginResponse;
class GetStatusResponse;
class GetTopologyResponse;
class ListPluginsResponse;
class ListPodsResponse;
class ListRefusalsResponse;
class NodeUse;
class Pool;
}  // namespace qrm::v1

namespace qrm::manager {

using SteadyTime = std::chrono::steady_clock::time_point;

v1::GetStatusResponse StatusAnswer(const NodeStatus& status, const checkpoint::NodeState& state,
                                   SteadyTime now);

/// In the order of the resources' names.
v1::ListPluginsResponse PluginsAnswer(std::vector<PluginInfo> plugins, SteadyTime now);

v1::ForgetPluginResponse ForgetAnswer(const checkpoint::PluginRecords& records);

/// The runtime's id of a container, or empty.
using RuntimeIdSource = std::function<std::string(const ContainerKey&)>;

/// What is to be said of a container besides; empty: nothing.
using RemarksSource =
    std::function<ContainerRemarks(const checkpoint::PodRecord& pod, const std::string& container)>;

/// The pods that `selector` means: a name, "namespace/name", a UID, or all when empty; by namespace
/// and name. Errors: kNotFound when it means none.
StatusOr<v1::ListPodsResponse> PodsAnswer(const checkpoint::NodeState& state,
                                          const std::string& selector,
                                          const RuntimeIdSource& runtime_id_of,
                                          const RemarksSource& remarks_of = {});

/// Oldest first.
using Decisions = std::vector<checkpoint::DecisionTrace>;

/// When a container last took an update, as far as somebody remembers.
using UpdateTimeSource =
    std::function<std::optional<std::chrono::system_clock::time_point>(const ContainerKey&)>;

/// The decisions about the pods that `selector` means, equal refusals as one: those that are there
/// first, then those that are gone, the one that came last before earlier ones; of each pod the
/// oldest decision first. The latest one about each container also tells what the container has
/// now, and since when. Errors: kNotFound when none is remembered.
StatusOr<v1::ExplainResponse> ExplainAnswer(const checkpoint::NodeState& state,
                                            const Decisions& decisions, const std::string& selector,
                                            const UpdateTimeSource& updated_at);

/// The refusals whose latest was at `since` or later, the latest first.
v1::ListRefusalsResponse RefusalsAnswer(const Decisions& decisions,
                                        std::chrono::system_clock::time_point since);

v1::DryRunResponse DryRunAnswer(const DryRunReport& report);

v1::GetTopologyResponse TopologyAnswer(const checkpoint::NodeState& state, const Machine& machine);

/// Who holds what of each NUMA node, in the order of the nodes and of the containers' names.
std::vector<v1::NodeUse> NodeUses(const checkpoint::NodeState& state, const Machine& machine);

/// Adds `pools`, of the plugin of `resource`; `known` are the pools whose configuration is known.
void AddPools(const std::vector<sdk::Pool>& pools, const std::string& resource,
              const std::vector<PoolStatus>& known,
              google::protobuf::RepeatedPtrField<v1::Pool>& messages);

/// The answer to GetPools, or SetPools, with what AddPools adds.
template <typename Response>
StatusOr<Response> PoolsAnswer(const StatusOr<std::vector<sdk::Pool>>& pools,
                               const std::string& resource = "",
                               const std::vector<PoolStatus>& known = {}) {
  QRM_RETURN_IF_ERROR(pools.status());
  Response response;
  AddPools(*pools, resource, known, *response.mutable_pools());
  return response;
}

}  // namespace qrm::manager
