// Takes the admitter's steps with forks of the built-in plugins.
#include "manager/admission/dry_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/decision_trace.h"
#include "manager/admission/explanation.h"
#include "manager/admission/request_rules.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "plugins/config/class_request.h"
#include "plugins/placement/requests.h"

namespace qrm::manager {

using Result = DryRunReport::Result;

namespace {

/// The pod is rejected when any container is, else admitted when any is, else skipped.
void Conclude(DryRunReport& report) {
  for (const Result result : {Result::kRejected, Result::kAdmitted, Result::kSkipped}) {
    const auto found =
        std::find_if(report.decisions.begin(), report.decisions.end(),
                     [&](const auto& decision) { return decision.result == result; });
    if (found != report.decisions.end()) {
      report.result = result;
      report.message = found->message;
      return;
    }
  }
}

/// The node's plugins, of which those inside qrmd are forks.
class ForkedPlugins final : public Plugins {
 public:
  /// `plugins` outlives it.
  explicit ForkedPlugins(Plugins& plugins) : plugins_(plugins) {
    for (const PluginInfo& info : plugins.List()) {
      LocalPlugin* const local = plugins.Local(info.resource);
      if (local != nullptr) {
        forks_.emplace(info.resource, local->Fork());
      }
    }
  }

  std::vector<PluginInfo> List() const override { return plugins_.List(); }
  std::optional<PluginInfo> Find(const std::string& resource) const override {
    return plugins_.Find(resource);
  }
  void MarkSuspect(const std::string& /*resource*/, const std::string& /*problem*/) override {}
  void Forget(const std::string& /*resource*/) override {}
  LocalPlugin* Local(const std::string& resource) const override {
    const auto found = forks_.find(resource);
    return found == forks_.end() ? nullptr : found->second.get();
  }
  void Start(const std::string& resource, std::shared_ptr<calls::Call> call,
             Deadline deadline) override {
    plugins_.Start(resource, std::move(call), deadline);
  }

 private:
  Plugins& plugins_;
  std::map<std::string, std::unique_ptr<LocalPlugin>> forks_;
};

}  // namespace

// One dry run.
struct DryRun::Call {
  Call(Planner its_planner, Deadline its_deadline)
      : planner(std::move(its_planner)), deadline(its_deadline) {}

  const Planner planner;
  const Deadline deadline;
  DryRunReport report{};
  std::set<std::string> untried;  // plugins and drivers that were asked for hints only
  std::set<std::string> unasked;  // plugins that give no hints: not asked at all

  // Of one admission.
  const placement::ContainerDemand* asked = nullptr;
  std::shared_ptr<const checkpoint::NodeState> planned;
  std::vector<placement::ContainerDemand> demands;  // in the order in which containers start
  std::vector<Draft> drafts;                        // of these
  Whole whole{};
};

DryRun::DryRun(const Parts& parts, placement::AdmissionOptions options)
    : parts_(parts),
      options_(std::move(options)),
      classes_(parts.state == nullptr ? nullptr : parts.classes, options_) {}

DryRunReport DryRun::Run(const std::vector<placement::ContainerDemand>& admissions,
                         Deadline deadline) const {
  ForkedPlugins plugins(parts_.plugins);
  Call call(Planner(plugins, parts_.machine, parts_.clock, options_), deadline);
  call.planned = parts_.state == nullptr ? std::make_shared<const checkpoint::NodeState>()
                                         : parts_.state->Load();
  for (const placement::ContainerDemand& asked : admissions) {
    call.asked = &asked;
    call.drafts.clear();
    call.whole = {};
    RunOne(call, admissions.size() > 1 ? admissions : asked.others);
  }
  Conclude(call.report);
  AddNotes(call);
  return std::move(call.report);
}

void DryRun::AddNotes(Call& call) {
  DryRunReport& report = call.report;
  for (const std::string& resource : call.unasked) {
    report.notes.push_back(fmt::format(
        "the plugin of {} gives no hints, so that only its allocation shows whether it has room",
        resource));
  }
  if (call.asked != nullptr && config::HasRuntimeKey(call.asked->pod.annotations)) {
    report.notes.emplace_back(
        "runtimes read class keys with beta, too, and reject the pod where their own support is "
        "off; use keys with alpha, or see check class keys of qrmctl doctor");
  }
  if (report.result != Result::kAdmitted) {
    return;
  }
  if (!call.untried.empty()) {
    const auto placed =
        std::count_if(report.decisions.begin(), report.decisions.end(),
                      [](const auto& decision) { return decision.result == Result::kAdmitted; });
    report.notes.push_back(fmt::format(
        "plugins that are processes only gave hints ({}){}: the pod may still be rejected when "
        "they allocate",
        fmt::join(call.untried, ", "),
        placed > 1 ? ", for each container without the pod's other containers" : ""));
  }
  report.notes.emplace_back(
      "nothing is reserved: the pod may still be rejected if the node changes until then");
}

void DryRun::RunOne(Call& call, const std::vector<placement::ContainerDemand>& others) const {
  const std::string skipped = ReasonToSkip(*call.asked, options_);
  AddDrafts(call, skipped.empty());
  if (const Status keys = classes_.CheckContainers(*call.asked, others); !keys.ok()) {
    Reject(call, call.drafts.front(), keys);
    return;
  }
  if (skipped.empty() && options_.scope == TopologyScope::kPod) {
    if (const Status aligned = call.planner.AlignTogether(call.drafts, call.whole); !aligned.ok()) {
      Reject(call, *call.whole.draft, aligned);
      return;
    }
  }
  for (Draft& draft : call.drafts) {
    draft.state = call.planned;
    const Status planned = Plan(call, draft, skipped);
    if (!planned.ok()) {
      Reject(call, draft, planned);
      return;
    }
  }
  for (Draft& draft : call.drafts) {
    const bool gets_something = draft.GetsSomething() || !draft.explanation.untried.empty();
    if (!skipped.empty()) {
      Decide(call, draft, Result::kSkipped, skipped);
    } else if (gets_something) {
      Decide(call, draft, Result::kAdmitted, "");
    } else {
      Decide(call, draft, Result::kSkipped, ReasonUnserved(draft));
    }
  }
}

// Skipped containers have their classes, and start whatever the plugins say.
Status DryRun::Plan(Call& call, Draft& draft, const std::string& skipped) const {
  QRM_RETURN_IF_ERROR(classes_.Choose(draft));
  if (Status planned = call.planner.Plan(draft); !planned.ok() && skipped.empty()) {
    return planned;
  }
  QRM_RETURN_IF_ERROR(classes_.ChooseByPlace(draft));
  for (const std::string& resource : draft.explanation.untried) {
    (draft.aligned.contains(resource) ? call.untried : call.unasked).insert(resource);
  }
  checkpoint::Change step;
  step.put_containers.push_back(
      {draft.demand.pod, draft.demand.container, RecordOf(draft, skipped)});
  call.planned = std::make_shared<const checkpoint::NodeState>(call.planned->With(std::move(step)));
  return OkStatus();
}

void DryRun::AddDrafts(Call& call, bool placed) {
  const std::vector<placement::ContainerDemand>& others = call.asked->others;
  const std::size_t place = std::min(call.asked->place, others.size());
  call.demands.assign(others.begin(), others.end());
  call.demands.insert(call.demands.begin() + static_cast<std::ptrdiff_t>(place), *call.asked);
  for (placement::ContainerDemand& demand : call.demands) {
    if (!placed) {
      demand = AskingForNothing(std::move(demand), nullptr);
    }
    call.drafts.push_back({.demand = demand,
                           .key = demand.key(),
                           .known = nullptr,
                           .deadline = call.deadline,
                           .state = call.planned,
                           .is_skipped = !placed});
    call.drafts.back().explanation.dry_run = true;
  }
  NameTogether(call.drafts);
}

void DryRun::Decide(Call& call, Draft& draft, Result result, const std::string& message) const {
  draft.explanation.result = ToString(result);
  draft.explanation.message = message;
  checkpoint::DecisionTrace trace = TraceOf(draft, parts_.clock.Now());
  trace.json = ToJson(draft.explanation, draft.demand);
  call.report.decisions.push_back(
      {.trace = std::move(trace), .result = result, .message = message});
}

// A pod is admitted as a whole or not at all: containers that already have a place are rejected,
// too.
void DryRun::Reject(Call& call, Draft& failed, const Status& cause) const {
  const std::string message = MessageOf(Rejection(cause, *call.asked, failed, call.whole));
  if (&failed == call.whole.draft.get()) {
    Decide(call, failed, Result::kRejected, message);
  }
  for (Draft& draft : call.drafts) {
    if (&draft == &failed || !draft.explanation.steps.empty()) {
      Decide(call, draft, Result::kRejected, message);
    }
  }
}

}  // namespace qrm::manager
