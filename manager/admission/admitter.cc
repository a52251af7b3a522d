// The steps of an admission, in the order in which Admit and Place call them.
#include "manager/admission/admitter.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/log.h"
#include "manager/admission/allocation_check.h"
#include "manager/admission/explanation.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

// One admission under way.
struct Admitter::Draft {
  const ContainerDemand& demand;
  const ContainerKey key;
  const Moment moment;
  const Deadline deadline;
  const std::chrono::steady_clock::time_point begin;
  const std::shared_ptr<const NodeState> before;
  const ContainerRecord* const known;  // of an earlier admission; or null

  std::vector<ContainerRequest> requests{};  // one for each plugin to ask
  std::set<std::string> aligned{};           // resources of `requests` with topology alignment
  std::set<std::string> selected{};          // resources that some request named
  std::vector<std::string> allocated{};      // plugins that were asked to allocate
  std::string failed_resource{};
  bool bad_answer = false;  // of the plugin of `failed_resource`
  std::chrono::steady_clock::time_point step_begin = begin;
  Explanation explanation{};

  std::string Name() const {
    return fmt::format("container {} of pod {}/{}", demand.container, demand.pod.pod_namespace,
                       demand.pod.name);
  }
};

namespace {

// The record of an earlier admission covers the request when it was made for at least as much, or
// gave as much.
bool Satisfies(const ContainerRecord& record, const std::string& requested,
               const std::string& resource, double amount) {
  const auto given = record.allocations.find(resource);
  if (given == record.allocations.end()) {
    return false;
  }
  const auto before = record.requests.find(requested);
  if (before != record.requests.end() && before->second >= amount) {
    return true;
  }
  // Under another name the pod's unit may differ from the plugin's.
  return requested == resource && given->second.is_scalar_resource &&
         std::ceil(given->second.quantity) >= amount;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsOn(const StringMap& annotations, const std::string& key) {
  const auto found = annotations.find(key);
  return found != annotations.end() && !found->second.empty() && found->second != "false";
}

bool Applies(const ImplicitResource& implicit, const checkpoint::PodMeta& pod) {
  return implicit.roles.contains(pod.role) ||
         (!implicit.annotation.empty() && IsOn(pod.annotations, implicit.annotation));
}

ContainerRequest MakeRequest(const ContainerDemand& demand, const std::string& resource,
                             const std::string& requested, double amount) {
  return {.key = demand.key(),
          .pod_namespace = demand.pod.pod_namespace,
          .pod_name = demand.pod.name,
          .type = demand.type,
          .index = demand.index,
          .pod_role = demand.pod.role,
          .pod_type = demand.pod.type,
          .resource = resource,
          .requests = {{requested, amount}},
          .labels = demand.pod.labels,
          .annotations = demand.pod.annotations,
          .native_qos_class = demand.pod.qos_class,
          .runtime_class = demand.runtime_class};
}

}  // namespace

Admitter::Admitter(Parts parts, AdmissionOptions options)
    : parts_(std::move(parts)), options_(std::move(options)) {}

StatusOr<RunOptions> Admitter::Admit(const ContainerDemand& demand, Moment moment,
                                     Deadline deadline) {
  const auto before = parts_.state.Load();
  Draft draft{.demand = demand,
              .key = demand.key(),
              .moment = moment,
              .deadline = deadline,
              .begin = parts_.clock.Steady(),
              .before = before,
              .known = before->Find(demand.key())};
  if (const std::string reason = ReasonToSkip(draft); !reason.empty()) {
    return Skip(draft, reason);
  }
  if (const Status selected = SelectPlugins(draft); !selected.ok()) {
    return Reject(draft, selected);
  }
  if (draft.requests.empty()) {
    return draft.known != nullptr ? Repeat(draft)
                                  : Skip(draft, "no plugin serves what it requests");
  }
  if (const Status placed = Place(draft); !placed.ok()) {
    return Reject(draft, placed);
  }
  Tell(draft, AdmissionEvent::Result::kAdmitted);
  return std::move(draft.explanation.options);
}

std::string Admitter::ReasonToSkip(const Draft& draft) const {
  const checkpoint::PodMeta& pod = draft.demand.pod;
  if (options_.skipped_namespaces.contains(pod.pod_namespace)) {
    return fmt::format("namespace {} is in skip-namespaces", pod.pod_namespace);
  }
  if (IsOn(pod.annotations, options_.skip_annotation)) {
    return fmt::format("annotation {} is set", options_.skip_annotation);
  }
  return {};
}

Status Admitter::SelectPlugins(Draft& draft) {
  draft.explanation.policy = ToString(options_.merge.policy);
  std::map<std::string, double> requests = draft.demand.requests;
  for (const ImplicitResource& implicit : options_.implicit_resources) {
    if (Applies(implicit, draft.demand.pod)) {
      requests.emplace(implicit.resource, 1);
    }
  }
  AddNativeResources(requests);
  draft.explanation.requests = requests;
  for (const auto& [name, amount] : requests) {
    QRM_RETURN_IF_ERROR(SelectPlugin(draft, name, amount));
  }
  return OkStatus();
}

const std::string& Admitter::PluginNameOf(const std::string& requested) const {
  const auto mapped = options_.resource_names.find(requested);
  return mapped == options_.resource_names.end() ? requested : mapped->second;
}

void Admitter::AddNativeResources(std::map<std::string, double>& requests) const {
  for (const std::string& resource : options_.native_resources) {
    const bool requested = std::any_of(requests.begin(), requests.end(), [&](const auto& request) {
      return PluginNameOf(request.first) == resource;
    });
    if (!requested && parts_.plugins.Find(resource).has_value()) {
      requests.emplace(resource, 0);
    }
  }
}

Status Admitter::SelectPlugin(Draft& draft, const std::string& name, double amount) {
  const std::string& resource = PluginNameOf(name);
  const std::optional<PluginInfo> plugin = parts_.plugins.Find(resource);
  if (!plugin.has_value()) {
    draft.explanation.unserved.push_back(name);
    return OkStatus();
  }
  draft.failed_resource = resource;
  if (!draft.selected.insert(resource).second) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it requests {} under two names, one of them {}, which resource-names-map makes "
                  "the same; request one of them",
                  resource, name);
  }
  if (draft.known != nullptr && Satisfies(*draft.known, name, resource, amount)) {
    draft.explanation.kept.push_back(resource);
    return OkStatus();
  }
  if (!plugin->live) {
    return Errorf(StatusCode::kUnavailable,
                  "the {} plugin at {} is away: {}, and the container is admitted when it is tried "
                  "again",
                  resource, plugin->endpoint, plugin->problem);
  }
  if (plugin->options.with_topology_alignment) {
    draft.aligned.insert(resource);
  }
  draft.requests.push_back(MakeRequest(draft.demand, resource, name, amount));
  return OkStatus();
}

Status Admitter::Place(Draft& draft) {
  using Step = Status (Admitter::*)(Draft&);
  static constexpr std::pair<const char*, Step> kSteps[] = {
      {"hints", &Admitter::CollectHints}, {"merge", &Admitter::ChooseHint},
      {"allocate", &Admitter::Allocate},  {"check", &Admitter::Validate},
      {"commit", &Admitter::Commit},
  };
  for (const auto& [name, step] : kSteps) {
    draft.step_begin = parts_.clock.Steady();
    if (draft.step_begin >= draft.deadline) {
      return Errorf(StatusCode::kDeadlineExceeded,
                    "its time was over before the step \"{}\"; it is tried again, or raise "
                    "admission-deadline",
                    name);
    }
    QRM_RETURN_IF_ERROR((this->*step)(draft));
    draft.explanation.steps.emplace_back(name, parts_.clock.Steady() - draft.step_begin);
  }
  return OkStatus();
}

Status Admitter::CollectHints(Draft& draft) {
  if (options_.merge.policy == TopologyPolicy::kNone) {
    return OkStatus();
  }
  std::vector<ContainerRequest> asked;
  std::copy_if(draft.requests.begin(), draft.requests.end(), std::back_inserter(asked),
               [&](const ContainerRequest& r) { return draft.aligned.contains(r.resource); });
  const auto answers = parts_.plugins.GetTopologyHints(asked, CallDeadline(draft));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    draft.failed_resource = asked[i].resource;
    if (!answers[i].ok()) {
      return answers[i].status();
    }
    draft.explanation.hints[asked[i].resource] = *answers[i];
  }
  for (const std::string& resource : draft.explanation.kept) {
    const ResourceAllocation& given = draft.known->allocations.at(resource);
    if (given.hints.has_value() && !given.hints->empty()) {
      draft.explanation.hints[resource] = *given.hints;
    }
  }
  return OkStatus();
}

Status Admitter::ChooseHint(Draft& draft) {
  Explanation& explanation = draft.explanation;
  draft.failed_resource.clear();
  if (options_.merge.policy == TopologyPolicy::kNone) {
    // All nodes rather than none: Go plugins that filter by the hint find nothing in an empty one.
    for (const std::string& resource : draft.aligned) {
      explanation.merged[resource] = {.nodes = parts_.machine.node_mask(), .preferred = true};
    }
  } else {
    MergeResult merged = MergeHints(parts_.machine, explanation.hints, options_.merge);
    explanation.merged = std::move(merged.hints);
    explanation.merge_reasons = std::move(merged.reasons);
    if (!merged.admit) {
      return Errorf(StatusCode::kResourceExhausted,
                    "no NUMA placement fits under topology-policy {}: {}; free resources or use a "
                    "softer policy",
                    ToString(options_.merge.policy), fmt::join(explanation.merge_reasons, ", "));
    }
  }
  for (ContainerRequest& request : draft.requests) {
    if (draft.aligned.contains(request.resource)) {
      request.hint = explanation.merged[request.resource];  // any node when the merge is silent
    }
  }
  return OkStatus();
}

Status Admitter::Allocate(Draft& draft) {
  for (const ContainerRequest& request : draft.requests) {
    draft.allocated.push_back(request.resource);
  }
  auto answers = parts_.plugins.Allocate(draft.requests, CallDeadline(draft));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      draft.failed_resource = draft.requests[i].resource;
      return answers[i].status();
    }
  }
  if (draft.known != nullptr) {
    draft.explanation.allocations = draft.known->allocations;
  }
  // A plugin's own resource first: what accompanies another never replaces it.
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string& resource = draft.requests[i].resource;
    draft.explanation.allocations.erase(resource);
    if (auto own = answers[i]->extract(resource); !own.empty()) {
      draft.explanation.allocations.insert(std::move(own));
    }
  }
  for (auto& answer : answers) {
    draft.explanation.allocations.merge(*answer);
  }
  return OkStatus();
}

Status Admitter::Validate(Draft& draft) {
  const std::vector<ExclusiveCpus> exclusive = FindExclusiveCpus(*draft.before);
  for (const auto& [resource, allocation] : draft.explanation.allocations) {
    if (Contains(draft.explanation.kept, resource)) {
      continue;  // it was good once, and what changed since is the reconciler's
    }
    draft.failed_resource = resource;
    const Status good = CheckAllocation(draft.key, allocation, parts_.machine, exclusive);
    draft.bad_answer = !good.ok();
    QRM_RETURN_IF_ERROR(good);
  }
  draft.failed_resource.clear();
  draft.explanation.options = MakeRunOptions(draft.explanation.allocations);
  for (const std::string& conflict : draft.explanation.options.conflicts) {
    log::Warning("plugins set the same thing differently",
                 {{"container", draft.Name()}, {"conflict", conflict}});
  }
  return OkStatus();
}

Status Admitter::Commit(Draft& draft) {
  Explanation& explanation = draft.explanation;
  explanation.result = "admitted";
  ContainerRecord record{.type = draft.demand.type,
                         .index = draft.demand.index,
                         .requests = explanation.requests,
                         .request_source = draft.demand.source,
                         .allocations = explanation.allocations};
  if (draft.moment == Moment::kAtCreation) {
    record.applied = explanation.options.properties;
  }
  Change change;
  change.put_containers.push_back({draft.demand.pod, draft.demand.container, std::move(record)});
  change.traces.push_back(MakeTrace(draft));
  return parts_.state.Commit(change);
}

RunOptions Admitter::Repeat(const Draft& draft) {
  Tell(draft, AdmissionEvent::Result::kRepeated);
  return MakeRunOptions(draft.known->allocations);
}

RunOptions Admitter::Skip(Draft& draft, const std::string& reason) {
  draft.explanation.result = "skipped";
  draft.explanation.message = reason;
  if (draft.moment == Moment::kAtCreation) {  // what runs already is tried again and again
    KeepTraceLater(draft);
  }
  Tell(draft, AdmissionEvent::Result::kSkipped);
  return {};
}

Status Admitter::Reject(Draft& draft, const Status& cause) {
  std::vector<std::string> to_release;  // but for what an earlier admission gave
  for (const std::string& resource : draft.allocated) {
    if (draft.known == nullptr || !draft.known->allocations.contains(resource)) {
      to_release.push_back(resource);
    }
  }
  parts_.releaser.RollBack(draft.key, to_release);

  Status rejected = Annotate(cause, draft.failed_resource.empty()
                                        ? fmt::format("cannot admit {}", draft.Name())
                                        : fmt::format("cannot admit {}: resource {}", draft.Name(),
                                                      draft.failed_resource));
  if (draft.bad_answer) {
    parts_.plugins.MarkSuspect(draft.failed_resource, MessageOf(rejected));
  }
  draft.explanation.result = "rejected";
  draft.explanation.message = MessageOf(rejected);
  KeepTraceLater(draft);
  Tell(draft, AdmissionEvent::Result::kRejected);
  return rejected;
}

checkpoint::DecisionTrace Admitter::MakeTrace(const Draft& draft) const {
  return {.key = draft.key,
          .pod_namespace = draft.demand.pod.pod_namespace,
          .pod_name = draft.demand.pod.name,
          .time = parts_.clock.Now(),
          .admitted = draft.explanation.result == "admitted",
          .json = ToJson(draft.explanation, draft.demand)};
}

// Nobody waits for the trace of what was not admitted: it follows the answer.
void Admitter::KeepTraceLater(const Draft& draft) {
  Change change;
  change.traces.push_back(MakeTrace(draft));
  parts_.state.Post([&state = parts_.state, change = std::move(change)] {
    if (const Status saved = state.Remember(change); !saved.ok()) {
      log::Warning("decision not kept for explain", {{"error", MessageOf(saved)}});
    }
  });
}

void Admitter::Tell(const Draft& draft, AdmissionEvent::Result result) const {
  if (parts_.listener) {
    parts_.listener({.result = result,
                     .resource = draft.failed_resource,
                     .took = parts_.clock.Steady() - draft.begin});
  }
}

Deadline Admitter::CallDeadline(const Draft& draft) const {
  return std::min(draft.deadline, parts_.clock.Steady() + options_.plugin_call_deadline);
}

}  // namespace qrm::manager
