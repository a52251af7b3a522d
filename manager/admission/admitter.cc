// The steps of an admission, in the order in which Admit and Plan call them.
#include "manager/admission/admitter.h"

#include <algorithm>
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
#include "manager/admission/request_rules.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

// What one container is to get; see Call.
struct Admitter::Draft {
  const Call& call;
  const ContainerDemand& demand;
  const ContainerKey key;
  const ContainerRecord* const known;  // of an earlier admission; or null

  std::vector<ContainerRequest> requests{};  // one for each plugin to ask
  std::set<std::string> aligned{};           // resources of `requests` with topology alignment
  std::set<std::string> selected{};          // resources that some request named
  std::vector<std::string> allocated{};      // plugins that were asked to allocate
  std::string failed_resource{};
  bool bad_answer = false;  // of the plugin of `failed_resource`
  Explanation explanation{};
};

// One admission under way: of the container that is asked for, and of those that are placed with
// it.
struct Admitter::Call {
  const ContainerDemand& asked;
  const Moment moment;
  const Deadline deadline;
  const std::chrono::steady_clock::time_point begin;
  const std::shared_ptr<const NodeState> before;

  std::shared_ptr<const NodeState> planned = before;  // with what the drafts so far get
  Change change{};
  std::vector<Draft> drafts{};  // in the order in which their containers start
  std::size_t asked_at = 0;

  Draft& asked_draft() { return drafts[asked_at]; }
};

namespace {

std::string NameOf(const ContainerDemand& demand) {
  return fmt::format("container {} of pod {}/{}", demand.container, demand.pod.pod_namespace,
                     demand.pod.name);
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Admitter::Admitter(Parts parts, AdmissionOptions options)
    : parts_(std::move(parts)), options_(std::move(options)) {}

StatusOr<RunOptions> Admitter::Admit(const ContainerDemand& demand, Moment moment,
                                     Deadline deadline) {
  Call call{.asked = demand,
            .moment = moment,
            .deadline = deadline,
            .begin = parts_.clock.Steady(),
            .before = parts_.state.Load()};
  AddDrafts(call);
  Draft& asked = call.asked_draft();
  if (const std::string reason = ReasonToSkip(demand, options_); !reason.empty()) {
    return Skip(asked, reason);
  }
  for (Draft& draft : call.drafts) {
    if (const Status planned = Plan(call, draft); !planned.ok()) {
      return Reject(call, draft, planned);
    }
  }
  if (const Status saved = Commit(call); !saved.ok()) {
    return Reject(call, asked, saved);
  }
  if (asked.requests.empty()) {
    return asked.known != nullptr ? Repeat(asked)
                                  : Skip(asked, "no plugin serves what it requests");
  }
  Tell(asked, AdmissionEvent::Result::kAdmitted);
  return std::move(asked.explanation.options);
}

// A container that has its place is not put at risk by the others; nor are they by it.
void Admitter::AddDrafts(Call& call) {
  const auto add = [&](const ContainerDemand& demand) {
    const ContainerKey key = demand.key();
    call.drafts.push_back(
        {.call = call, .demand = demand, .key = key, .known = call.before->Find(key)});
    call.drafts.back().explanation.after_the_fact = call.moment == Moment::kAfterTheFact;
  };
  const bool alone = call.before->Find(call.asked.key()) != nullptr;
  const std::size_t others = alone ? 0 : call.asked.others.size();
  for (std::size_t i = 0; i <= others; ++i) {
    if (i == std::min(call.asked.place, others)) {
      call.asked_at = call.drafts.size();
      add(call.asked);
    }
    if (i < others && call.before->Find(call.asked.others[i].key()) == nullptr) {
      add(call.asked.others[i]);
    }
  }
}

Status Admitter::SelectPlugins(Draft& draft) {
  draft.explanation.policy = ToString(options_.merge.policy);
  for (const Draft& other : draft.call.drafts) {
    if (&other != &draft) {
      draft.explanation.together.push_back(other.demand.container);
    }
  }
  draft.explanation.requests = AllRequests(draft.demand, options_, parts_.plugins);
  for (const auto& [name, amount] : draft.explanation.requests) {
    QRM_RETURN_IF_ERROR(SelectPlugin(draft, name, amount));
  }
  return OkStatus();
}

Status Admitter::SelectPlugin(Draft& draft, const std::string& name, double amount) {
  const std::string& resource = PluginNameOf(name, options_);
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

Status Admitter::CheckTime(const Call& call, const char* step) const {
  if (parts_.clock.Steady() < call.deadline) {
    return OkStatus();
  }
  return Errorf(StatusCode::kDeadlineExceeded,
                "its time was over before the step \"{}\"; it is tried again, or raise "
                "admission-deadline",
                step);
}

Status Admitter::Plan(Call& call, Draft& draft) {
  using Step = Status (Admitter::*)(Draft&);
  static constexpr std::pair<const char*, Step> kSteps[] = {
      {"hints", &Admitter::CollectHints},
      {"merge", &Admitter::ChooseHint},
      {"allocate", &Admitter::Allocate},
      {"check", &Admitter::Validate},
  };
  QRM_RETURN_IF_ERROR(SelectPlugins(draft));
  if (draft.requests.empty()) {
    return OkStatus();
  }
  for (const auto& [name, step] : kSteps) {
    const auto begin = parts_.clock.Steady();
    QRM_RETURN_IF_ERROR(CheckTime(call, name));
    QRM_RETURN_IF_ERROR((this->*step)(draft));
    draft.explanation.steps.emplace_back(name, parts_.clock.Steady() - begin);
  }
  Note(call, draft);
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
  const std::vector<ExclusiveCpus> exclusive = FindExclusiveCpus(*draft.call.planned);
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
                 {{"container", NameOf(draft.demand)}, {"conflict", conflict}});
  }
  return OkStatus();
}

void Admitter::Note(Call& call, Draft& draft) const {
  Explanation& explanation = draft.explanation;
  explanation.result = "admitted";
  ContainerRecord record{.type = draft.demand.type,
                         .index = draft.demand.index,
                         .requests = explanation.requests,
                         .request_source = draft.demand.source,
                         .allocations = explanation.allocations};
  if (call.moment == Moment::kAtCreation) {
    record.applied = explanation.applied = explanation.options.properties;
  }
  Change::PutContainer put{draft.demand.pod, draft.demand.container, std::move(record)};
  if (call.drafts.size() > 1) {
    Change step;
    step.put_containers.push_back(put);
    call.planned = std::make_shared<const NodeState>(call.planned->With(std::move(step)));
  }
  call.change.put_containers.push_back(std::move(put));
}

Status Admitter::Commit(Call& call) {
  if (call.change.Empty()) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(CheckTime(call, "commit"));
  for (const Draft& draft : call.drafts) {
    if (!draft.requests.empty()) {
      call.change.traces.push_back(MakeTrace(draft));
    }
  }
  return parts_.state.Commit(call.change);
}

RunOptions Admitter::Repeat(const Draft& draft) {
  Tell(draft, AdmissionEvent::Result::kRepeated);
  return MakeRunOptions(draft.known->allocations);
}

RunOptions Admitter::Skip(Draft& draft, const std::string& reason) {
  draft.explanation.result = "skipped";
  draft.explanation.message = reason;
  if (draft.call.moment == Moment::kAtCreation) {  // what runs already is tried again and again
    KeepTraceLater(draft);
  }
  Tell(draft, AdmissionEvent::Result::kSkipped);
  return {};
}

Status Admitter::Reject(Call& call, Draft& failed, const Status& cause) {
  std::map<std::string, std::vector<std::string>> to_release;
  for (const Draft& draft : call.drafts) {
    for (const std::string& resource : draft.allocated) {
      if (draft.known == nullptr || !draft.known->allocations.contains(resource)) {
        to_release[draft.demand.container].push_back(resource);
      }
    }
  }
  parts_.releaser.RollBack(call.asked.pod.uid, to_release);

  std::string context = "cannot admit " + NameOf(call.asked);
  if (&failed != &call.asked_draft()) {
    context += ": container " + failed.demand.container;
  }
  if (!failed.failed_resource.empty()) {
    context += ": resource " + failed.failed_resource;
  }
  const Status rejected = Annotate(cause, context);
  if (failed.bad_answer) {
    parts_.plugins.MarkSuspect(failed.failed_resource, MessageOf(rejected));
  }
  failed.explanation.result = "rejected";
  failed.explanation.message = MessageOf(rejected);
  KeepTraceLater(failed);
  Tell(failed, AdmissionEvent::Result::kRejected);
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
                     .took = parts_.clock.Steady() - draft.call.begin});
  }
}

Deadline Admitter::CallDeadline(const Draft& draft) const {
  return std::min(draft.call.deadline, parts_.clock.Steady() + options_.plugin_call_deadline);
}

}  // namespace qrm::manager
