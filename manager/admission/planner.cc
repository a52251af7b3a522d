// The steps of a plan, in the order in which Plan calls them.
#include "manager/admission/planner.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/admission/draft.h"
#include "manager/admission/request_rules.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/run_options.h"
#include "manager/state/allocation_check.h"
#include "plugins/placement/device_hints.h"
#include "plugins/placement/requests.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

/// The entry among the hints for the nodes of the pod's other containers; not a valid resource
/// name, so it cannot collide with a plugin's.
constexpr char kRestOfPod[] = "(the rest of the pod)";

/// The same, for the nodes of CPUs that kubelet or the runtime chose.
constexpr char kGivenCpus[] = "(the container's CPUs)";

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Clears the OCI properties of the plugins' CPUs and memory nodes that the driver overrides: they
/// are recorded but not applied.
void Overrule(const DriverPart& driver, AllocationByResource& allocations) {
  for (auto& [resource, allocation] : allocations) {
    const bool is_overruled =
        (allocation->oci_property == kCpusetCpus && !driver.grant.Cpus().Empty()) ||
        (allocation->oci_property == kCpusetMems && !driver.grant.mems.Empty());
    if (is_overruled && !resource->starts_with(driver.resource)) {
      allocation.Edit().oci_property.clear();
    }
  }
}

/// Whether the plugin decided against the container; another error is a failed call.
bool IsRefusal(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted ||
         status.code() == StatusCode::kInvalidArgument;
}

/// Removes from `draft.allocated` the plugins whose answer says that they allocated nothing: the
/// container's former allocation is unchanged and need not be restored.
template <typename Answers>
void LeaveOutRefusals(const Answers& answers, Draft& draft) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (IsRefusal(answers[i].status())) {
      std::erase(draft.allocated, draft.requests[i].resource);
    }
  }
}

bool RequestsAny(const ContainerRequest& request) {
  return std::any_of(request.requests.begin(), request.requests.end(),
                     [](const auto& amount) { return amount.second > 0; });
}

/// The allocations that give more than the container's record does: those on record stay if
/// permissions change.
AllocationByResource NewlyGiven(const Draft& draft) {
  if (draft.known == nullptr) {
    return draft.explanation.allocations;
  }
  AllocationByResource given;
  for (const auto& [resource, allocation] : draft.explanation.allocations) {
    const auto before = draft.known->allocations.find(resource);
    if (before == draft.known->allocations.end() || before->second->pool != allocation->pool ||
        before->second->exclusive != allocation->exclusive ||
        before->second->annotations != allocation->annotations) {
      given.emplace(resource, allocation);
    }
  }
  return given;
}

}  // namespace

Planner::Planner(Plugins& plugins, const Machine& machine, const Clock& clock,
                 const placement::AdmissionOptions& options)
    : driver_(plugins, machine, options),
      plugins_(plugins),
      machine_(machine),
      clock_(clock),
      options_(options) {}

Status Planner::Plan(Draft& draft) const {
  QRM_RETURN_IF_ERROR(Align(draft));
  if (!draft.IsServed()) {
    return OkStatus();
  }
  if (draft.explanation.dry_run) {
    LeaveOutProcesses(draft);
    if (draft.requests.empty()) {
      return OkStatus();
    }
  } else if (draft.driver.has_value()) {
    QRM_RETURN_IF_ERROR(Take(draft, "driver", &Planner::AskDriver));
  }
  QRM_RETURN_IF_ERROR(Take(draft, "allocate", &Planner::Allocate));
  return Take(draft, "check", &Planner::Validate);
}

Status Planner::Align(Draft& draft) const {
  QRM_RETURN_IF_ERROR(SelectPlugins(draft));
  if (!draft.IsServed()) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(Take(draft, "hints", &Planner::CollectHints));
  QRM_RETURN_IF_ERROR(Take(draft, "merge", &Planner::ChooseHint));
  return draft.explanation.dry_run ? CheckPossible(draft) : OkStatus();
}

// An admission goes on under a policy that admits such hints, and the plugin's allocation decides.
// A dry run does not ask plugin processes to allocate.
Status Planner::CheckPossible(Draft& draft) {
  if (draft.impossible.empty()) {
    return OkStatus();
  }
  draft.failed_resource = draft.impossible.front();
  return Errorf(StatusCode::kResourceExhausted,
                "its plugin hints that no NUMA node can serve the request; free some of {}, or "
                "request less",
                draft.failed_resource);
}

Status Planner::AlignTogether(std::vector<Draft>& drafts, Whole& whole) const {
  if (drafts.size() < 2) {
    return OkStatus();
  }
  std::vector<const placement::ContainerDemand*> demands;
  demands.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    demands.push_back(&draft.demand);
  }
  whole.demand = placement::WholePod(demands, options_, NeededNatives(options_, plugins_));
  whole.draft = std::make_unique<Draft>(Draft{.demand = whole.demand,
                                              .key = whole.demand.key(),
                                              .known = nullptr,
                                              .deadline = drafts.front().deadline,
                                              .state = drafts.front().state});
  whole.draft->is_whole_pod = true;
  whole.draft->explanation.for_pod = true;
  whole.draft->explanation.after_the_fact = drafts.front().explanation.after_the_fact;
  QRM_RETURN_IF_ERROR(Align(*whole.draft));
  for (Draft& draft : drafts) {
    draft.pod = &whole.draft->explanation;
  }
  return OkStatus();
}

Status Planner::Take(Draft& draft, const char* name, Step step) const {
  const auto begin = clock_.Steady();
  QRM_RETURN_IF_ERROR(CheckTime(draft.deadline, name));
  const Status done = (this->*step)(draft);
  draft.explanation.steps.emplace_back(name, clock_.Steady() - begin);
  return done;
}

Status Planner::CheckTime(Deadline deadline, const std::string& step) const {
  if (clock_.Steady() < deadline) {
    return OkStatus();
  }
  return Errorf(StatusCode::kDeadlineExceeded,
                "the admission deadline passed before the step \"{}\"; try again, or raise "
                "admission-deadline",
                step);
}

Status Planner::SelectPlugins(Draft& draft) const {
  draft.explanation.policy = ToString(options_.merge.policy);
  draft.explanation.requests =
      AllRequests(draft.demand, options_, NeededNatives(options_, plugins_));
  if (draft.known == nullptr) {  // recorded allocations stay if permissions change
    QRM_RETURN_IF_ERROR(CheckWishes(draft.demand, draft.explanation.requests, options_));
  }
  QRM_RETURN_IF_ERROR(driver_.Choose(draft, CallDeadline(draft)));
  for (const auto& [name, amount] : draft.explanation.requests) {
    const bool is_drivers =
        draft.driver.has_value() && PluginNameOf(name, options_) == kCpuResource;
    if (!is_drivers) {
      QRM_RETURN_IF_ERROR(SelectPlugin(draft, name, amount, options_, plugins_));
    }
  }
  return draft.known == nullptr ? CheckRequired(draft, options_, plugins_) : OkStatus();
}

// A dry run also asks plugin processes for hints that are not merged: they show what these plugins
// would reject.
Status Planner::CollectHints(Draft& draft) const {
  Explanation& explanation = draft.explanation;
  const bool is_aligned = options_.merge.policy != TopologyPolicy::kNone;
  if (is_aligned && draft.pod != nullptr) {
    explanation.for_pod = true;
    explanation.hints = draft.pod->hints;
  }
  if (!is_aligned || draft.pod != nullptr) {
    HintsByResource unmerged;
    return explanation.dry_run ? AskForHints(draft, ProcessesOf(draft), unmerged) : OkStatus();
  }
  const Status failed = AskForHints(draft, draft.requests, explanation.hints);
  if (draft.driver.has_value()) {
    explanation.hints[kCpuResource] = draft.driver->hints;
  }
  for (const std::string& resource : explanation.kept) {
    const ResourceAllocation& given = draft.known->allocations.at(resource);
    if (given.hints.has_value() && !given.hints->empty()) {
      explanation.hints[resource] = *given.hints;
    }
  }
  if (!draft.pod_nodes.Empty()) {
    explanation.hints[kRestOfPod] = HintList({{.nodes = draft.pod_nodes, .preferred = true}});
  }
  for (const auto& [name, device] : draft.demand.devices) {
    if (device.hints.IsNoPreference()) {
      explanation.refusals[name] = "the NUMA node of the device is not known";
    } else {
      explanation.hints[name] = device.hints;
    }
  }
  const NumaMask near = machine_.NodesOf(draft.demand.cpus);
  if (!near.Empty() && near != machine_.node_mask() &&
      !NeedsPlugin(kCpuResource, options_, plugins_)) {
    std::vector<TopologyHint> each;  // one node is near enough for what follows
    for (const int node : near) {
      each.push_back({.nodes = {node}, .preferred = true});
    }
    explanation.hints[kGivenCpus] = HintList(std::move(each));
  }
  return failed;
}

/// The requests to plugins that are processes.
std::vector<ContainerRequest> Planner::ProcessesOf(const Draft& draft) const {
  std::vector<ContainerRequest> requests;
  std::copy_if(draft.requests.begin(), draft.requests.end(), std::back_inserter(requests),
               [&](const ContainerRequest& r) { return plugins_.Local(r.resource) == nullptr; });
  return requests;
}

/// Leaves the requests to built-in plugins: in a dry run, no other plugin allocates.
void Planner::LeaveOutProcesses(Draft& draft) const {
  for (const ContainerRequest& request : ProcessesOf(draft)) {
    draft.explanation.untried.push_back(request.resource);
  }
  std::erase_if(draft.requests, [&](const ContainerRequest& request) {
    return plugins_.Local(request.resource) == nullptr;
  });
}

/// Whether the plugin hangs, or answered against the protocol: it is suspect then.
bool Planner::IsSuspect(const std::string& resource, const Status& status) const {
  const std::optional<PluginInfo> plugin = plugins_.Find(resource);
  return status.code() == StatusCode::kDeadlineExceeded ||  // its allocation would be late, too
         (status.code() == StatusCode::kInternal && plugin.has_value() && !plugin->problem.empty());
}

/// Adds the plugins' answers about `requests` to `hints`, and records the rejections.
Status Planner::AskForHints(Draft& draft, const std::vector<ContainerRequest>& requests,
                            HintsByResource& hints) const {
  std::vector<ContainerRequest> asked;
  std::copy_if(requests.begin(), requests.end(), std::back_inserter(asked),
               [&](const ContainerRequest& r) { return draft.aligned.contains(r.resource); });
  auto answers = plugins_.AskForEach<calls::GetTopologyHints>(asked, CallDeadline(draft));
  const bool is_lenient = options_.merge.policy == TopologyPolicy::kNone ||
                          options_.merge.policy == TopologyPolicy::kBestEffort;
  Status failed;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::string& resource = asked[i].resource;
    if (answers[i].ok()) {
      if (answers[i]->IsImpossible() && plugins_.Local(resource) == nullptr) {
        draft.impossible.push_back(resource);
      }
      hints[resource] = *std::move(answers[i]);
    } else {
      draft.explanation.refusals[resource] = MessageOf(answers[i].status());
      if (is_lenient && !IsRefusal(answers[i].status()) &&
          !IsSuspect(resource, answers[i].status())) {
        hints[resource] = HintList::Impossible();  // as Katalyst does; the allocation decides
        continue;
      }
      draft.failed_resource = failed.ok() ? resource : draft.failed_resource;
      failed.Update(answers[i].status());
    }
  }
  return failed;
}

Status Planner::ChooseHint(Draft& draft) const {
  Explanation& explanation = draft.explanation;
  draft.failed_resource.clear();
  if (options_.merge.policy == TopologyPolicy::kNone) {
    // All nodes, not none: Go plugins that filter by the hint would find nothing in an empty one.
    for (const std::string& resource : draft.aligned) {
      explanation.merged[resource] = {.nodes = machine_.node_mask(), .preferred = true};
    }
  } else if (draft.pod != nullptr) {
    explanation.merged = draft.pod->merged;
    explanation.merge_reasons = draft.pod->merge_reasons;
  } else {
    MergeResult merged = placement::MergeBesideDevices(machine_, explanation.hints,
                                                       draft.demand.devices, options_.merge);
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
      request.hint = explanation.merged[request.resource];  // any node if the merge has no entry
    }
  }
  if (draft.driver.has_value()) {
    draft.driver->hint = explanation.merged[kCpuResource];
  }
  return OkStatus();
}

Status Planner::AskDriver(Draft& draft) const {
  return driver_.Admit(draft, CallDeadline(draft));
}

Status Planner::Allocate(Draft& draft) const {
  for (const ContainerRequest& request : draft.requests) {
    draft.allocated.push_back(request.resource);
  }
  auto answers = plugins_.AskForEach<calls::Allocate>(draft.requests, CallDeadline(draft));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      draft.failed_resource = draft.requests[i].resource;
      if (draft.known != nullptr) {
        LeaveOutRefusals(answers, draft);
      }
      return answers[i].status();
    }
  }
  if (draft.known != nullptr && !draft.driver.has_value()) {
    draft.explanation.allocations = draft.known->allocations;
    draft.origins = draft.known->origins;
  }
  for (auto& answer : answers) {
    std::erase_if(*answer, [](const auto& given) { return IsEmptyCpuset(given.second); });
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    InferExclusive(draft, draft.requests[i].resource, *answers[i]);
  }
  // Each plugin's own resource first: an allocation that another plugin adds never replaces it.
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string& resource = draft.requests[i].resource;
    draft.explanation.allocations.erase(resource);
    if (auto own = answers[i]->extract(resource); !own.empty()) {
      draft.explanation.allocations.insert(std::move(own));
      draft.origins[resource] = OriginOf(resource);
    } else if (draft.demand.type != ContainerType::kInit && RequestsAny(draft.requests[i])) {
      draft.unanswered.push_back(resource);
    }
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const checkpoint::Origin origin = OriginOf(draft.requests[i].resource);
    for (auto& [resource, allocation] : *answers[i]) {
      if (draft.explanation.allocations.emplace(resource, std::move(allocation)).second) {
        draft.origins[resource] = origin;
      }
    }
  }
  if (draft.explanation.after_the_fact && !draft.demand.runtime_id.empty()) {
    LeaveOutWhatCameTooLate(draft);
  }
  return OkStatus();
}

// Plugins without our extension do not say which CPUs are exclusive.
void Planner::InferExclusive(const Draft& draft, const std::string& plugin,
                             AllocationByResource& given) const {
  const std::optional<PluginInfo> info = plugins_.Find(plugin);
  if (!info.has_value() || info->options.says_exclusive ||
      !(Contains(options_.exclusive_cpu_plugins, plugin) ||
        placement::IsDedicatedCores(draft.demand.pod))) {
    return;
  }
  for (auto& [resource, allocation] : given) {
    if (allocation->oci_property == kCpusetCpus && !allocation->exclusive) {
      ResourceAllocation& own = allocation.Edit();
      own.exclusive = own.is_inferred = true;
    }
  }
}

checkpoint::Origin Planner::OriginOf(const std::string& plugin) const {
  const std::optional<PluginInfo> info = plugins_.Find(plugin);
  return {.plugin = plugin, .endpoint = info.has_value() ? info->endpoint : std::string()};
}

Status Planner::Validate(Draft& draft) const {
  const std::vector<ExclusiveCpus> exclusive = FindExclusiveCpus(*draft.state);
  const CpuSet offline = machine_.OfflineNow();
  for (const auto& [resource, allocation] : draft.explanation.allocations) {
    if (Contains(draft.explanation.kept, resource)) {
      continue;  // checked when it was allocated; the reconciler checks later changes
    }
    draft.failed_resource = resource;
    Status good = CheckProperty(allocation);
    if (good.ok()) {
      good = CheckAllocation(draft.key, draft.demand.type, allocation, machine_, exclusive);
    }
    if (good.ok()) {
      good = CheckBoundMemory(draft.key, draft.demand.type, allocation, machine_, *draft.state);
    }
    if (good.ok() && options_.has_cgroup_v1 && allocation->oci_property == kUnified) {
      good = Errorf(StatusCode::kFailedPrecondition,
                    "it gave {} {}, but this node has cgroup v1; let the plugin give a property "
                    "that cgroup v1 has, such as CpuShares",
                    kUnified, allocation->value);
    }
    draft.bad_answer = !good.ok();
    QRM_RETURN_IF_ERROR(good);
    // Not a bad answer: not every plugin watches which CPUs are online.
    QRM_RETURN_IF_ERROR(CheckOnline(allocation, OnlineCpus::kAllOwned, offline));
  }
  draft.failed_resource.clear();
  QRM_RETURN_IF_ERROR(ApplyDrivers(draft, offline));
  KeepOffCpusBeingLeft(draft, draft.explanation.allocations, draft.explanation.options);
  for (const std::string& conflict : draft.explanation.options.conflicts) {
    log::Warning("plugins set conflicting values",
                 {{"container", NameOf(draft.demand)}, {"conflict", conflict}});
  }
  return OkStatus();
}

// A driver's values override the plugins'.
Status Planner::ApplyDrivers(Draft& draft, const CpuSet& offline) const {
  Explanation& explanation = draft.explanation;
  if (!draft.driver.has_value() || explanation.dry_run) {
    QRM_RETURN_IF_ERROR(CheckGiven(draft.demand, NewlyGiven(draft), options_));
    explanation.options = MakeRunOptions(explanation.allocations, offline);
    return OkStatus();
  }
  const DriverPart& driver = *draft.driver;
  QRM_RETURN_IF_ERROR(DriverStep::CheckMemory(draft));
  AllocationByResource given = NewlyGiven(draft);
  given.erase(kCpuResource);  // withheld for the driver
  given.erase(driver.resource);
  QRM_RETURN_IF_ERROR(CheckGiven(draft.demand, given, options_));
  AllocationByResource applied = explanation.allocations;
  Overrule(driver, applied);
  explanation.options = MakeRunOptions(applied, offline);
  return OkStatus();
}

Deadline Planner::CallDeadline(const Draft& draft) const {
  return std::min(draft.deadline, clock_.Steady() + options_.plugin_call_deadline);
}

}  // namespace qrm::manager
