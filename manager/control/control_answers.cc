// Builds the control API's messages from the state and the daemon's status.
#include "manager/control/control_answers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/repeated_lines.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "checkpoint/decision_trace.h"
#include "manager/observability/subsystems.h"
#include "manager/state/pod_selector.h"
#include "topology/describe.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;

double SecondsSince(std::optional<SteadyTime> then, SteadyTime now) {
  return then.has_value() ? std::chrono::duration<double>(now - *then).count() : -1;
}

/// Whether `selector` selects the pod. An empty selector selects all pods.
bool IsMeant(const std::string& selector, const std::string& uid, const std::string& pod_namespace,
             const std::string& name) {
  return selector.empty() || manager::IsMeant(selector, {uid, pod_namespace, name});
}

v1::RuntimeStatus RuntimeMessage(const RuntimeStatus& runtime, SteadyTime now) {
  v1::RuntimeStatus message;
  message.set_name(runtime.runtime.name);
  message.set_version(runtime.runtime.version);
  message.set_nri_connected(runtime.nri_connected);
  message.set_nri_connects(runtime.nri_connects);
  message.set_nri_disconnects(runtime.nri_disconnects);
  message.set_seconds_since_sync(SecondsSince(runtime.last_sync, now));
  message.set_cri_reachable(runtime.cri_reachable);
  message.set_problem(runtime.problem);
  message.set_mode(std::string(ToString(runtime.mode)));
  return message;
}

v1::ReconcileStatus ReconcileMessage(const ReconcileStatus& reconcile, SteadyTime now) {
  v1::ReconcileStatus message;
  message.set_period_seconds(std::chrono::duration<double>(reconcile.period).count());
  message.set_seconds_since_last(SecondsSince(reconcile.last, now));
  message.set_runs(reconcile.runs);
  message.set_updates(reconcile.updates);
  message.set_failures(reconcile.failures);
  message.set_last_problem(reconcile.last_problem);
  message.set_drift_repairs(reconcile.drift_repairs);
  message.set_deferred_updates(reconcile.deferred);
  return message;
}

void FillDecision(const checkpoint::DecisionTrace& trace, v1::Decision& message) {
  message.set_pod_uid(trace.key.pod_uid);
  message.set_pod_namespace(trace.pod_namespace);
  message.set_pod_name(trace.pod_name);
  message.set_container(trace.key.container);
  message.set_unix_millis(UnixMillis(trace.time));
  message.set_admitted(trace.admitted);
  if (trace.commit.has_value()) {
    message.set_commit_micros(
        std::chrono::duration_cast<std::chrono::microseconds>(*trace.commit).count());
  }
  message.set_json(trace.json);
}

/// The decisions about the selected pods, in the order of ExplainAnswer. Identical rejections are
/// one decision.
Decisions DecisionsAbout(const NodeState& state, const Decisions& decisions,
                         const std::string& selector) {
  Decisions traces;
  std::map<std::string, std::pair<bool, std::size_t>> ranks;  // by UID
  for (const checkpoint::DecisionTrace& trace : decisions) {
    const std::string& uid = trace.key.pod_uid;
    if (IsMeant(selector, uid, trace.pod_namespace, trace.pod_name)) {
      traces.push_back(trace);
      ranks.try_emplace(uid, state.FindPod(uid) != nullptr, ranks.size());
    }
  }
  traces = checkpoint::Folded(std::move(traces));
  std::stable_sort(traces.begin(), traces.end(), [&](const auto& a, const auto& b) {
    return ranks.at(a.key.pod_uid) > ranks.at(b.key.pod_uid);
  });
  return traces;
}

/// Adds the applied values and the time of the latest update to the latest decision about each
/// container.
void FillApplied(const NodeState& state, const UpdateTimeSource& updated_at,
                 v1::ExplainResponse& response) {
  std::set<ContainerKey> seen;
  for (int i = response.decisions_size() - 1; i >= 0; --i) {
    v1::Decision& decision = *response.mutable_decisions(i);
    const ContainerKey key{decision.pod_uid(), decision.container()};
    const ContainerRecord* record = seen.insert(key).second ? state.Find(key) : nullptr;
    if (record == nullptr) {
      continue;
    }
    decision.mutable_applied()->insert(record->applied.begin(), record->applied.end());
    if (const auto updated = updated_at(key); updated.has_value()) {
      decision.set_updated_unix_millis(UnixMillis(*updated));
    }
  }
}

}  // namespace

v1::GetStatusResponse StatusAnswer(const NodeStatus& status, const NodeState& state,
                                   SteadyTime now) {
  v1::GetStatusResponse message;
  message.set_version(status.version);
  message.set_uptime_seconds(SecondsSince(status.started, now));
  message.set_ready(status.ready());
  *message.mutable_not_ready_reasons() = {status.not_ready_reasons.begin(),
                                          status.not_ready_reasons.end()};
  *message.mutable_degraded_reasons() = {status.degraded_reasons.begin(),
                                         status.degraded_reasons.end()};
  *message.mutable_runtime() = RuntimeMessage(status.runtime, now);
  *message.mutable_reconcile() = ReconcileMessage(status.reconcile, now);
  message.set_pods(state.pod_count());
  message.set_containers(state.container_count());
  message.set_pending_removals(state.pending_removals().size());
  message.set_topology_policy(status.topology_policy);
  message.set_state_path(status.state_path);
  *message.mutable_warnings() = {status.warnings.begin(), status.warnings.end()};
  message.set_requests_from(status.requests.source);
  for (const SubsystemStatus& subsystem : status.subsystems) {
    v1::Subsystem& line = *message.add_subsystems();
    line.set_name(std::string(ToString(subsystem.subsystem)));
    line.set_state(std::string(ToString(subsystem.health)));
    line.set_seconds_in_state(SecondsSince(subsystem.since, now));
    line.set_about(subsystem.about);
    line.set_next(subsystem.next);
  }
  return message;
}

v1::ListPluginsResponse PluginsAnswer(std::vector<PluginInfo> plugins,
                                      const RequestsStatus& requests, SteadyTime now) {
  std::sort(plugins.begin(), plugins.end(),
            [](const PluginInfo& a, const PluginInfo& b) { return a.resource < b.resource; });
  v1::ListPluginsResponse response;
  for (const PluginInfo& plugin : plugins) {
    v1::Plugin& message = *response.add_plugins();
    message.set_resource_name(plugin.resource);
    message.set_endpoint(plugin.endpoint);
    message.set_registered_by(std::string(ToString(plugin.registered_by)));
    message.set_live(plugin.live);
    message.set_problem(plugin.problem);
    message.set_with_topology_alignment(plugin.options.with_topology_alignment);
    message.set_need_reconcile(plugin.options.need_reconcile);
    message.set_pre_start_required(plugin.options.pre_start_required);
    const bool never = plugin.registered_by == RegisteredBy::kCheckpoint;
    message.set_seconds_since_registration(never ? -1 : SecondsSince(plugin.registered_at, now));
  }
  if (std::string problem = requests.problem(); !problem.empty()) {
    response.add_notes(std::move(problem));
  }
  return response;
}

StatusOr<v1::ExplainResponse> ExplainAnswer(const NodeState& state, const Decisions& decisions,
                                            const std::string& selector,
                                            const UpdateTimeSource& updated_at) {
  v1::ExplainResponse response;
  for (const checkpoint::DecisionTrace& trace : DecisionsAbout(state, decisions, selector)) {
    FillDecision(trace, *response.add_decisions());
  }
  if (response.decisions().empty()) {
    return Errorf(StatusCode::kNotFound,
                  "cannot explain {}: no decision about it is remembered; qrmctl pods lists the "
                  "admitted pods",
                  selector.empty() ? "anything" : selector);
  }
  FillApplied(state, updated_at, response);
  return response;
}

v1::ListRefusalsResponse RefusalsAnswer(const Decisions& decisions,
                                        std::chrono::system_clock::time_point since) {
  std::map<std::pair<ContainerKey, std::string>, v1::Refusal> by_cause;
  for (const checkpoint::DecisionTrace& trace : decisions) {
    const auto document = nlohmann::json::parse(trace.json, nullptr, /*allow_exceptions=*/false);
    if (!document.is_object() || document.value("result", "") != "rejected") {
      continue;
    }
    const std::string message = document.value("message", "");
    v1::Refusal& refusal = by_cause[{trace.key, WithoutNumbers(message)}];
    if (refusal.times() == 0) {
      refusal.set_pod_uid(trace.key.pod_uid);
      refusal.set_pod_namespace(trace.pod_namespace);
      refusal.set_pod_name(trace.pod_name);
      refusal.set_container(trace.key.container);
      refusal.set_first_unix_millis(document.value("first_unix_millis", UnixMillis(trace.time)));
    }
    refusal.set_message(message);
    refusal.set_last_unix_millis(UnixMillis(trace.time));
    refusal.set_times(refusal.times() + 1 + document.value("equal_ones_before", uint64_t{0}));
  }
  std::vector<v1::Refusal> refusals;
  for (auto& [cause, refusal] : by_cause) {
    if (refusal.last_unix_millis() >= UnixMillis(since)) {
      refusals.push_back(std::move(refusal));
    }
  }
  std::stable_sort(refusals.begin(), refusals.end(), [](const auto& a, const auto& b) {
    return a.last_unix_millis() > b.last_unix_millis();
  });
  v1::ListRefusalsResponse response;
  *response.mutable_refusals() = {std::make_move_iterator(refusals.begin()),
                                  std::make_move_iterator(refusals.end())};
  return response;
}

v1::GetTopologyResponse TopologyAnswer(const NodeState& state, const Machine& machine) {
  v1::GetTopologyResponse response;
  response.set_json(
      MachineToJson(machine).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  response.set_text(DescribeMachine(machine));
  for (v1::NodeUse& use : NodeUses(state, machine)) {
    *response.add_use() = std::move(use);
  }
  return response;
}

v1::DryRunResponse DryRunAnswer(const DryRunReport& report) {
  v1::DryRunResponse response;
  response.set_result(std::string(ToString(report.result)));
  response.set_message(report.message);
  *response.mutable_notes() = {report.notes.begin(), report.notes.end()};
  for (const DryRunReport::Decision& decision : report.decisions) {
    FillDecision(decision.trace, *response.add_decisions());
  }
  return response;
}

void AddPools(const std::vector<sdk::Pool>& pools, const std::string& resource,
              const std::vector<PoolStatus>& known,
              google::protobuf::RepeatedPtrField<v1::Pool>& messages) {
  for (const sdk::Pool& pool : pools) {
    v1::Pool& message = *messages.Add();
    message.set_name(pool.name);
    message.set_cpus(ToString(pool.cpus));
    *message.mutable_roles() = {pool.roles.begin(), pool.roles.end()};
    message.set_containers(pool.containers);
    message.set_borrowed_cpus(ToString(pool.borrowed));
    message.set_cpu_class(pool.cpu_class);
    message.set_class_problem(pool.class_problem);
    for (const PoolStatus& status : known) {
      if (status.resource == resource && status.pool == pool.name &&
          status.configured != pool.cpus) {
        message.set_configured_cpus(status.configured.Empty() ? "none"
                                                              : ToString(status.configured));
      }
    }
  }
}

}  // namespace qrm::manager
