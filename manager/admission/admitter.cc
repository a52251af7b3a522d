// Plans the containers of an admission one after another, and commits them together.
#include "manager/admission/admitter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "checkpoint/decision_log.h"
#include "checkpoint/decision_trace.h"
#include "checkpoint/shared_parts.h"
#include "manager/admission/draft.h"
#include "manager/admission/releaser.h"
#include "manager/admission/request_rules.h"
#include "manager/registry/plugins.h"
#include "manager/state/allocation_check.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/recorded_grants.h"
#include "plugins/placement/requests.h"
#include "topology/machine.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

namespace {

PodMessage MessageTo(const checkpoint::PodMeta& pod, std::string message, const char* reason) {
  return {pod.pod_namespace, pod.name, pod.uid, std::move(message), reason};
}

}  // namespace

// One admission in progress: of the requested container, and of the containers placed with it.
struct Admitter::Call {
  const placement::ContainerDemand& asked;
  const Moment moment;
  const Deadline deadline;
  const std::chrono::steady_clock::time_point begin;
  const Status known;  // whether the state is the disk's
  const std::shared_ptr<const NodeState> before;
  const std::string reason;  // to skip the container; empty: it is not skipped
  const Status keys;         // whether its pod's class keys name containers that it has

  std::shared_ptr<const NodeState> planned = before;  // with the allocations of the drafts so far
  Change change{};
  std::vector<Draft> drafts;  // in the order in which their containers start
  std::size_t asked_at = 0;
  Whole whole{};
  Draft* failed = nullptr;  // the draft that could not be placed; null: the requested container's
  std::optional<std::chrono::nanoseconds> commit;  // its duration, if there was a commit
  bool disk_failed = false;
  bool without_class = false;  // the failed draft asks for a class that it cannot have

  Draft& asked_draft() { return drafts[asked_at]; }
  Draft& failed_draft() { return failed != nullptr ? *failed : asked_draft(); }
};

Admitter::Admitter(Parts parts, placement::AdmissionOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      planner_(parts_.plugins, parts_.machine, parts_.clock, options_),
      classes_(parts_.classes, options_),
      shared_(std::make_unique<checkpoint::SharedParts>()) {}

Admitter::~Admitter() = default;

bool Admitter::Lacks(const checkpoint::ContainerRecord& record, const std::string& resource) const {
  return manager::Lacks(record, resource, options_);
}

std::string Admitter::WhySkipped(const placement::ContainerDemand& demand) const {
  std::string reason = ReasonToSkip(demand, options_);
  return reason.empty() ? "no running plugin serves what it requests" : reason;
}

StatusOr<RunOptions> Admitter::Admit(const placement::ContainerDemand& demand, Moment moment,
                                     Deadline deadline) {
  const Status known = parts_.state.Recall();
  const auto before = parts_.state.Load();
  const std::string reason = ReasonToSkip(demand, options_);
  placement::ContainerDemand asked =
      reason.empty() ? demand : AskingForNothing(demand, before->FindPod(demand.pod.uid));
  ShareNames(asked);
  Call call{.asked = std::move(asked),
            .moment = moment,
            .deadline = deadline,
            .begin = parts_.clock.Steady(),
            .known = known,
            .before = before,
            .reason = reason,
            .keys = moment == Moment::kAtCreation ? classes_.CheckContainers(demand, demand.others)
                                                  : OkStatus()};
  AddDrafts(call);
  StatusOr<RunOptions> answer = Decide(call);
  if (answer.ok() && moment == Moment::kAtCreation) {
    KeepOffOwned(call.asked.key(), *answer);
  }
  if (call.commit.has_value()) {
    // Frees it for other containers now; the reconcile repeats a release that fails here.
    parts_.releaser.RollBack(call.asked.pod.uid, GivenTooLate(call.drafts));
    for (Draft& draft : call.drafts) {
      if (draft.GetsSomething()) {
        NoteUnknownRole(draft);
        Keep(draft, call.commit);
      }
    }
  }
  return answer;
}

StatusOr<RunOptions> Admitter::Decide(Call& call) {
  if (!call.keys.ok() && call.asked_draft().known == nullptr) {
    return Reject(call, call.asked_draft(), call.keys);
  }
  if (!call.reason.empty()) {
    return LeaveAlone(call);
  }
  const Status placed = Place(call);
  if (placed.ok()) {
    return Answer(call, call.asked_draft());
  }
  if (call.asked_draft().known == nullptr || !call.known.ok() ||
      call.moment != Moment::kAtCreation) {
    return Reject(call, call.failed_draft(), placed);
  }
  // The recorded allocations are still reserved for this container. The rest of its requests is
  // retried while it runs.
  log::Warning("container recreated with its former allocations",
               {{"error", MessageOf(RollBack(call, call.failed_draft(), placed))}});
  return Repeat(call, call.asked_draft());
}

Status Admitter::Place(Call& call) {
  // Before plugins allocate: releasing after a failure could free what is in use.
  call.disk_failed = !call.known.ok();
  QRM_RETURN_IF_ERROR(call.known);
  if (const Status aligned = AlignPod(call); !aligned.ok()) {
    call.failed = call.whole.draft.get();
    return aligned;
  }
  for (Draft& draft : call.drafts) {
    draft.state = call.planned;
    if (const Status planned = PlanDraft(call, draft); !planned.ok()) {
      call.failed = &draft;
      return planned;
    }
    if (draft.GetsSomething()) {
      Note(call, draft);
    }
  }
  return Commit(call);
}

// Classes first: choosing them asks no plugin, so a rejection has nothing to release. The plugins'
// default classes are known only with the allocations.
Status Admitter::PlanDraft(Call& call, Draft& draft) const {
  call.without_class = true;
  QRM_RETURN_IF_ERROR(classes_.Choose(draft));
  call.without_class = false;
  QRM_RETURN_IF_ERROR(planner_.Plan(draft));
  QRM_RETURN_IF_ERROR(classes_.ChooseByPlace(draft));
  draft.explanation.options.classes = draft.class_options;
  return OkStatus();
}

StatusOr<RunOptions> Admitter::Answer(Call& call, Draft& asked) {
  if (!asked.GetsSomething()) {
    return asked.known != nullptr ? Repeat(call, asked) : Skip(call, asked, ReasonUnserved(asked));
  }
  Tell(call, asked, AdmissionEvent::Result::kAdmitted);
  RunOptions options = asked.explanation.options;
  options.unanswered = asked.unanswered;
  return options;
}

// A skipped container must start even if the plugins fail. Classes need no plugin.
StatusOr<RunOptions> Admitter::LeaveAlone(Call& call) {
  Draft& asked = call.asked_draft();
  asked.explanation.message = call.reason + ": it only stays off reserved and exclusive resources";
  if (const Status placed = Place(call); !placed.ok()) {
    if (call.without_class && asked.known == nullptr) {
      return Reject(call, asked, placed);
    }
    const Status why = RollBack(call, call.failed_draft(), placed);
    asked.explanation.message = fmt::format(
        "{}, but no plugin keeps it off exclusive resources: {}", call.reason, MessageOf(why));
    return GivesOnlyClasses(call, asked) ? Answer(call, asked)
                                         : Skip(call, asked, asked.explanation.message);
  }
  return !asked.GetsSomething() && asked.known == nullptr
             ? Skip(call, asked, call.reason)
             : Answer(call, asked).value_or(RunOptions());
}

bool Admitter::GivesOnlyClasses(Call& call, Draft& draft) {
  if (call.moment != Moment::kAtCreation || draft.known != nullptr || call.disk_failed ||
      !classes_.Choose(draft).ok() || draft.explanation.classes.empty()) {
    return false;
  }
  draft.requests.clear();
  draft.origins.clear();
  draft.driver.reset();
  draft.explanation.allocations.clear();
  draft.explanation.options = {};
  draft.explanation.options.classes = draft.class_options;
  call.change = {};
  Note(call, draft);
  return Commit(call).ok();
}

void Admitter::ShareNames(placement::ContainerDemand& demand) {
  shared_->Share(demand.pod);
  shared_->Share(demand.container);
  for (placement::ContainerDemand& other : demand.others) {
    ShareNames(other);
  }
}

// A container with allocations is planned separately: its repeated admission and the admission of
// the other containers must not fail together.
void Admitter::AddDrafts(Call& call) {
  const auto add = [&](const placement::ContainerDemand& demand) {
    const ContainerKey key = demand.key();
    call.drafts.push_back({.demand = demand,
                           .key = key,
                           .known = call.before->Find(key),
                           .deadline = call.deadline,
                           .state = call.before,
                           .is_reviewed = call.moment == Moment::kForReview});
    call.drafts.back().is_skipped = !call.reason.empty();
    call.drafts.back().explanation.after_the_fact = call.moment != Moment::kAtCreation;
    call.drafts.back().explanation.resized = call.moment >= Moment::kForResize;
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
  NameTogether(call.drafts);
}

// Without the pod's spec, containers are admitted one by one: later containers are aligned to the
// nodes of the recorded ones.
Status Admitter::AlignPod(Call& call) const {
  if (options_.scope != TopologyScope::kPod) {
    return OkStatus();
  }
  if (const checkpoint::PodRecord* pod = call.before->FindPod(call.asked.pod.uid); pod != nullptr) {
    for (Draft& draft : call.drafts) {
      draft.pod_nodes = NodesOfOthers(*pod, draft.demand.container);
    }
    return OkStatus();
  }
  return planner_.AlignTogether(call.drafts, call.whole);
}

void Admitter::Note(Call& call, Draft& draft) {
  Explanation& explanation = draft.explanation;
  explanation.result = "admitted";
  if (call.moment != Moment::kAtCreation && IsNothingNew(draft)) {
    return;
  }
  ContainerRecord record = RecordOf(draft, call.reason);
  if (call.moment == Moment::kAtCreation) {
    explanation.applied = explanation.options.properties;
  }
  // The containers placed with it apply their values when they are created.
  if (call.moment == Moment::kAtCreation && &draft == &call.asked_draft()) {
    record.applied = explanation.options.properties;
    record.applied_to = draft.demand.runtime_id;
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
  QRM_RETURN_IF_ERROR(planner_.CheckTime(call.deadline, "commit"));
  const auto begin = parts_.clock.Steady();
  if (const Status saved = parts_.state.Commit(call.change); !saved.ok()) {
    call.disk_failed = true;
    return saved;
  }
  call.commit = parts_.clock.Steady() - begin;
  return OkStatus();
}

StatusOr<RunOptions> Admitter::Repeat(Call& call, Draft& draft) {
  const CpuSet offline = parts_.machine.OfflineNow();
  for (const auto& [resource, allocation] : draft.known->allocations) {
    if (const Status online = CheckOnline(allocation, OnlineCpus::kSome, offline); !online.ok()) {
      return Reject(call, draft, online);
    }
  }
  Tell(call, draft, AdmissionEvent::Result::kRepeated);
  RunOptions options = MakeRunOptions(draft.known->allocations, offline);
  KeepOffCpusBeingLeft(draft, draft.known->allocations, options);
  options.classes = classes_.Resolve(draft.known->classes);
  if (call.moment == Moment::kAtCreation) {
    NoteApplied(draft, options.properties);
  }
  return options;
}

// Recorded after the answer: if a crash loses the record, the values are applied once more.
void Admitter::NoteApplied(const Draft& draft, const StringMap& properties) const {
  parts_.state.Post(
      [&state = parts_.state, key = draft.key, id = draft.demand.runtime_id, properties] {
        const auto now = state.Load();
        const ContainerRecord* record = now->Find(key);
        if (record == nullptr || record->AppliedTo(id) == properties) {
          return;
        }
        Change change;
        change.put_containers.push_back({now->FindPod(key.pod_uid)->meta, key.container, *record});
        change.put_containers.back().record.applied = properties;
        change.put_containers.back().record.applied_to = id;
        if (const Status saved = state.Remember(change); !saved.ok()) {
          log::Warning("cannot record the values of a recreated container",
                       {{"error", MessageOf(saved)}});
        }
      });
}

RunOptions Admitter::Skip(const Call& call, Draft& draft, const std::string& reason) {
  draft.explanation.result = "skipped";
  draft.explanation.message = reason;
  RunOptions options;
  if (draft.known != nullptr) {
    options.classes = classes_.Resolve(draft.known->classes);
  }
  if (call.moment == Moment::kAtCreation) {  // running containers are retried each period
    KeepOffOwned(draft.key, options);
    draft.explanation.applied = options.properties;
    Keep(draft, std::nullopt);
  }
  Tell(call, draft, AdmissionEvent::Result::kSkipped);
  return options;
}

// By the records: the plugin of the exclusive CPUs may not be running.
void Admitter::KeepOffOwned(const ContainerKey& key, RunOptions& options) const {
  const std::string cpus(kCpusetCpus);
  if (options.properties.contains(cpus)) {
    return;
  }
  const CpuSet owned = OwnedByOthers(key, *parts_.state.Load());
  const CpuSet free = parts_.machine.cpu_set() - owned - parts_.machine.OfflineNow();
  if (!owned.Empty() && !free.Empty()) {
    options.properties[cpus] = ToString(free);
  }
}

// A running container without a record keeps what plugins allocated until the next try: a release
// would give what it uses to other containers. Only what it cannot use is released.
Status Admitter::RollBack(const Call& call, const Draft& failed, const Status& cause) {
  std::map<std::string, std::vector<std::string>> allocated;
  for (const Draft& draft : call.drafts) {
    for (const std::string& resource : draft.allocated) {
      const bool is_bad = &draft == &failed && failed.bad_answer && resource == failed.Blamed();
      const bool is_in_vain =
          std::find(draft.too_late.begin(), draft.too_late.end(), resource) != draft.too_late.end();
      const bool has_former = draft.known != nullptr && placement::Holds(*draft.known, resource);
      if (call.moment == Moment::kAtCreation || has_former || is_bad || is_in_vain) {
        allocated[draft.demand.container].push_back(resource);
      }
    }
  }
  parts_.releaser.RollBack(call.asked.pod.uid, allocated);
  const Status rejected = Rejection(cause, call.asked, failed, call.whole);
  if (failed.bad_answer) {
    parts_.plugins.MarkSuspect(failed.Blamed(), MessageOf(rejected));
  }
  return rejected;
}

Status Admitter::Reject(Call& call, Draft& failed, const Status& cause) {
  const Status rejected = RollBack(call, failed, cause);
  // Kubelet retries forever; its retries must not push other rejections out of the history. The
  // sentence contains free amounts, which change without changing the reason.
  const std::string reason = fmt::format("{} {} {}", call.asked.pod.uid, call.asked.container,
                                         WithoutNumbers(MessageOf(rejected)));
  const auto equal_ones = rejections_.Take(reason, parts_.clock.Steady());
  // A resize is retried while its container runs on: count one rejection of each reason.
  const bool counts = call.asked_draft().known == nullptr || equal_ones.has_value();
  if (parts_.listener && counts) {
    AdmissionEvent event = EventOf(call, failed, AdmissionEvent::Result::kRejected);
    event.reason = call.disk_failed ? "disk" : RefusalReason(cause, failed);
    event.rejected = MessageTo(call.asked.pod, MessageOf(rejected), "PlacementRefused");
    event.ends_pod_of = PodToEnd(call.asked, failed, event.reason, options_);
    parts_.listener(event);
  }
  if (equal_ones.has_value()) {
    KeepRejection(call, failed, MessageOf(rejected), *equal_ones);
  }
  return rejected;
}

void Admitter::KeepRejection(Call& call, Draft& failed, const std::string& message,
                             uint64_t equal_ones_before) {
  const auto keep = [&](Draft& draft) {
    draft.explanation.result = "rejected";
    draft.explanation.message = message;
    draft.explanation.equal_ones_before = equal_ones_before;
    Keep(draft, std::nullopt);
  };
  if (&failed == call.whole.draft.get()) {
    keep(failed);
  }
  for (Draft& draft : call.drafts) {  // all that were planned before the failure
    if (&draft == &failed || !draft.explanation.steps.empty()) {
      keep(draft);
    }
  }
}

// The last use of the draft's explanation. Posted so that the answer to the runtime waits neither
// for the JSON nor for waking the thread that writes it.
void Admitter::Keep(Draft& draft, std::optional<std::chrono::nanoseconds> commit) {
  checkpoint::DecisionTrace trace = TraceOf(draft, parts_.clock.Now());
  trace.commit = commit;
  const auto subject = std::make_shared<const placement::ContainerDemand>(SubjectOf(draft.demand));
  const auto explanation = std::make_shared<const Explanation>(std::move(draft.explanation));
  parts_.state.Post(
      [&decisions = parts_.decisions, trace = std::move(trace), subject, explanation]() mutable {
        decisions.Add(std::move(trace),
                      [subject, explanation] { return ToJson(*explanation, *subject); });
      });
}

// A known role would have decided before the cpu plugin's last two rules.
void Admitter::NoteUnknownRole(const Draft& draft) {
  const checkpoint::PodMeta& pod = draft.demand.pod;
  const auto cpus = draft.explanation.allocations.find("cpu");
  const auto request = draft.explanation.requests.find("cpu");
  const bool requests_cpus = request != draft.explanation.requests.end() && request->second > 0;
  if (pod.role.empty() || !requests_cpus || cpus == draft.explanation.allocations.end()) {
    return;
  }
  const std::string& by = cpus->second->decided_by;
  if ((by != "default-pool" && by != "static") ||
      !unknown_roles_.Take(pod.role, parts_.clock.Steady()).has_value()) {
    return;
  }
  parts_.decisions.Note({.type = "role",
                         .message = fmt::format(
                             "no pool, role or rule of the cpu plugin is for role {}: placed by {}",
                             Quoted(pod.role), by),
                         .key = draft.key,
                         .pod_namespace = pod.pod_namespace,
                         .pod_name = pod.name});
}

AdmissionEvent Admitter::EventOf(const Call& call, const Draft& draft,
                                 AdmissionEvent::Result result) const {
  return {.result = result,
          .resource = draft.failed_resource,
          .took = parts_.clock.Steady() - call.begin};
}

void Admitter::Tell(const Call& call, const Draft& draft, AdmissionEvent::Result result) const {
  if (!parts_.listener) {
    return;
  }
  AdmissionEvent event = EventOf(call, draft, result);
  for (const Draft& placed : call.drafts) {
    for (const std::string& warning : placed.explanation.driver.warnings) {
      event.warnings.push_back(MessageTo(placed.demand.pod,
                                         fmt::format("{}: {}", NameOf(placed.demand), warning),
                                         "ComputeDriverWarning"));
    }
  }
  if (result == AdmissionEvent::Result::kAdmitted) {
    NoteIgnoredKeys(draft.demand.pod, BindingOf(draft.explanation), event);
  }
  parts_.listener(event);
}

}  // namespace qrm::manager
