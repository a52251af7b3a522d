// The control API's answers: pure functions from the daemon's state to messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/decision_log.h"
#include "checkpoint/node_state.h"
#include "checkpoint/plugin_records.h"
#include "manager/admission/dry_run_report.h"
#include "manager/classes/class_choice.h"
#include "manager/observability/config_trial.h"
#include "manager/observability/node_services.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/permissions.h"
#include "plugins/sdk/resource_plugin.h"

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace qrm::v1 {
class DryRunResponse;
class ExplainResponse;
class ForgetPluginResponse;
class GetPermissionsResponse;
class GetPolicyResponse;
class GetStatusResponse;
class GetTopologyResponse;
class ListClassesResponse;
class ListEventsResponse;
class ListPluginsResponse;
class ListPodsResponse;
class ListRefusalsResponse;
class NodeUse;
class Pool;
class TryConfigurationResponse;
}  // namespace qrm::v1

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

using SteadyTime = std::chrono::steady_clock::time_point;

inline int64_t UnixMillis(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

v1::GetStatusResponse StatusAnswer(const NodeStatus& status, const checkpoint::NodeState& state,
                                   SteadyTime now);

/// The plugins in the order of their resources' names; a note if they get estimated requests.
v1::ListPluginsResponse PluginsAnswer(std::vector<PluginInfo> plugins,
                                      const RequestsStatus& requests, SteadyTime now);

v1::ForgetPluginResponse ForgetAnswer(const checkpoint::PluginRecords& records);

/// The runtime's id of a container; empty if unknown.
using RuntimeIdSource = std::function<std::string(const ContainerKey&)>;

/// Remarks about a container; null: none.
using RemarksSource =
    std::function<ContainerRemarks(const checkpoint::PodRecord& pod, const std::string& container)>;

/// Decisions, oldest first.
using Decisions = std::vector<checkpoint::DecisionTrace>;

/// What a list of pods has beside the recorded ones.
struct MoreOfPods {
  std::vector<UnplacedContainer> unplaced;  ///< listed too, unless they are recorded
  Decisions decisions;  ///< show since when each container is as it is; empty: that is not shown
};

/// The pods that `selector` selects: a name, "namespace/name", a UID, or all when empty; in the
/// order of namespace and name. Errors: kNotFound when no pod is selected.
StatusOr<v1::ListPodsResponse> PodsAnswer(const checkpoint::NodeState& state,
                                          const std::string& selector,
                                          const RuntimeIdSource& runtime_id_of,
                                          const RemarksSource& remarks_of = {},
                                          const MoreOfPods& more = {});

/// The time of a container's latest update; absent if unknown.
using UpdateTimeSource =
    std::function<std::optional<std::chrono::system_clock::time_point>(const ContainerKey&)>;

/// The decisions about the pods that `selector` selects. Identical rejections are one decision.
/// Existing pods come first, then removed pods, in both groups the newest pod first. The decisions
/// of one pod are oldest first. The latest decision about a container also has the container's
/// current values and the time of its latest update. Errors: kNotFound when no decision is kept.
StatusOr<v1::ExplainResponse> ExplainAnswer(const checkpoint::NodeState& state,
                                            const Decisions& decisions, const std::string& selector,
                                            const UpdateTimeSource& updated_at);

/// The rejections since `since`, latest first. Identical ones are counted as one, which is included
/// if its latest occurrence was at `since` or later.
v1::ListRefusalsResponse RefusalsAnswer(const Decisions& decisions,
                                        std::chrono::system_clock::time_point since);

/// The decisions and other events at `since` and later, oldest first.
v1::ListEventsResponse EventsAnswer(const std::vector<checkpoint::DecisionTrace>& traces,
                                    std::chrono::system_clock::time_point since);

/// The types in their order, each with its classes in the order of their names.
v1::ListClassesResponse ClassesAnswer(const std::vector<ClassTypeStatus>& types);

/// All rules in their order, or only the rule for `pod_namespace` if that is not empty.
v1::GetPermissionsResponse PermissionsAnswer(const placement::Permissions& permissions,
                                             const std::string& pod_namespace);

v1::GetPolicyResponse PolicyAnswer(const std::vector<PluginPolicy>& policies);

v1::TryConfigurationResponse TrialAnswer(const ConfigTrial& trial);

v1::DryRunResponse DryRunAnswer(const DryRunReport& report);

v1::GetTopologyResponse TopologyAnswer(const checkpoint::NodeState& state, const Machine& machine);

/// The CPUs and memory of each container by NUMA node, in the order of nodes and containers' names.
std::vector<v1::NodeUse> NodeUses(const checkpoint::NodeState& state, const Machine& machine);

/// Adds `pools` of the plugin of `resource` to `messages`. `known` are the pools whose
/// configuration is known.
void AddPools(const std::vector<sdk::Pool>& pools, const std::string& resource,
              const std::vector<PoolStatus>& known,
              google::protobuf::RepeatedPtrField<v1::Pool>& messages);

/// The answer to GetPools or SetPools, filled by AddPools.
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
