// Takes the admitter's steps up to the merged hints, which change nothing.
#include "manager/admission/dry_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/decision_trace.h"
#include "manager/admission/explanation.h"
#include "manager/admission/request_rules.h"
#include "manager/state/state_loop.h"
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

/// Plugins that give no hints decide only when they allocate.
void NoteUnasked(const std::vector<Draft>& drafts, DryRunReport& report) {
  std::set<std::string> unasked;
  for (const Draft& draft : drafts) {
    for (const ContainerRequest& request : draft.requests) {
      if (!draft.aligned.contains(request.resource)) {
        unasked.insert(request.resource);
      }
    }
  }
  for (const std::string& resource : unasked) {
    report.notes.push_back(fmt::format(
        "the plugin of {} gives no hints, so that only its allocation shows whether it has room",
        resource));
  }
}

void AddNotes(bool asked_together, DryRunReport& report) {
  if (report.result != Result::kAdmitted) {
    return;
  }
  const auto placed =
      std::count_if(report.decisions.begin(), report.decisions.end(),
                    [](const auto& decision) { return decision.result == Result::kAdmitted; });
  if (placed > 1 && !asked_together) {
    report.notes.emplace_back(
        "each container was tried without the pod's other containers: each fits, but together "
        "they may not, or they may get other nodes");
  }
  report.notes.emplace_back(
      "nothing was allocated: the pod may still be rejected if a plugin cannot allocate what it "
      "hinted, or if the node changes until then");
}

}  // namespace

// One admission of the dry run.
struct DryRun::Call {
  const placement::ContainerDemand& asked;
  const Deadline deadline;
  DryRunReport& report;
  std::vector<Draft> drafts;  // in the order in which their containers start
  Whole whole{};
};

DryRun::DryRun(const Parts& parts, placement::AdmissionOptions options)
    : clock_(parts.clock),
      options_(std::move(options)),
      planner_(parts.plugins, parts.machine, parts.clock, options_),
      classes_(parts.state == nullptr ? nullptr : parts.classes, options_),
      state_(parts.state) {}

DryRunReport DryRun::Run(const std::vector<placement::ContainerDemand>& admissions,
                         Deadline deadline) const {
  DryRunReport report;
  for (const placement::ContainerDemand& asked : admissions) {
    RunOne(asked, deadline, report);
  }
  Conclude(report);
  const bool asked_together = options_.scope == TopologyScope::kPod && admissions.size() == 1;
  AddNotes(asked_together, report);
  return report;
}

void DryRun::RunOne(const placement::ContainerDemand& asked, Deadline deadline,
                    DryRunReport& report) const {
  Call call{.asked = asked, .deadline = deadline, .report = report};
  AddDrafts(call);
  if (const std::string reason = ReasonToSkip(asked, options_); !reason.empty()) {
    for (Draft& draft : call.drafts) {
      Decide(call, draft, Result::kSkipped, reason);
    }
    return;
  }
  if (options_.scope == TopologyScope::kPod) {
    if (const Status aligned = planner_.AlignTogether(call.drafts, call.whole); !aligned.ok()) {
      Reject(call, *call.whole.draft, aligned);
      return;
    }
  }
  for (Draft& draft : call.drafts) {
    Status aligned = classes_.Choose(draft);
    if (aligned.ok()) {
      aligned = planner_.Align(draft);
    }
    if (!aligned.ok()) {
      Reject(call, draft, aligned);
      return;
    }
  }
  for (Draft& draft : call.drafts) {
    !draft.GetsSomething() ? Decide(call, draft, Result::kSkipped, ReasonUnserved(draft))
                           : Decide(call, draft, Result::kAdmitted, "");
  }
  NoteUnasked(call.drafts, report);
}

void DryRun::AddDrafts(Call& call) const {
  const auto state = state_ == nullptr ? nullptr : state_->Load();
  const std::vector<placement::ContainerDemand>& others = call.asked.others;
  for (std::size_t i = 0; i <= others.size(); ++i) {
    const auto add = [&](const placement::ContainerDemand& demand) {
      call.drafts.push_back({.demand = demand,
                             .key = demand.key(),
                             .known = nullptr,
                             .deadline = call.deadline,
                             .state = state});
      call.drafts.back().explanation.dry_run = true;
    };
    if (i == std::min(call.asked.place, others.size())) {
      add(call.asked);
    }
    if (i < others.size()) {
      add(others[i]);
    }
  }
  NameTogether(call.drafts);
}

void DryRun::Decide(Call& call, Draft& draft, Result result, const std::string& message) const {
  draft.explanation.result = ToString(result);
  draft.explanation.message = message;
  checkpoint::DecisionTrace trace = TraceOf(draft, clock_.Now());
  trace.json = ToJson(draft.explanation, draft.demand);
  call.report.decisions.push_back(
      {.trace = std::move(trace), .result = result, .message = message});
}

// A pod is admitted as a whole or not at all: containers that already have hints are rejected, too.
void DryRun::Reject(Call& call, Draft& failed, const Status& cause) const {
  const std::string message = MessageOf(Rejection(cause, call.asked, failed, call.whole));
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
