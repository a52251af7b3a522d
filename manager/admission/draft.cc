// Relates the drafts of one pod to each other, and turns drafts into traces and rejections.
#include "manager/admission/draft.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/foreign_text.h"
#include "api/base/log.h"
#include "checkpoint/decision_trace.h"
#include "manager/admission/class_step.h"
#include "manager/runtime/run_options.h"
#include "manager/state/allocation_check.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::manager {
namespace {

/// The requests that the allocations are for: the former amount where it could not change.
std::map<std::string, double> ServedRequests(const Draft& draft) {
  std::map<std::string, double> requests = draft.explanation.requests;
  for (const std::string& name : draft.fixed) {
    const auto former = draft.known->requests.find(name);
    if (former == draft.known->requests.end()) {
      requests.erase(name);
    } else {
      requests[name] = former->second;
    }
  }
  return requests;
}

}  // namespace

const std::string& Draft::Blamed() const {
  const auto origin = origins.find(failed_resource);
  return origin == origins.end() ? failed_resource : origin->second.plugin;
}

bool IsNothingNew(const Draft& draft) {
  const AllocationByResource& planned = draft.explanation.allocations;
  if (draft.known == nullptr) {
    return false;
  }
  if (!draft.is_reviewed) {
    return !draft.unanswered.empty() && planned == draft.known->allocations;
  }
  // The cpu plugin may have added to its part since.
  return std::all_of(planned.begin(), planned.end(), [&](const auto& entry) {
    const auto before = draft.known->allocations.find(entry.first);
    return before != draft.known->allocations.end() &&
           before->second->value == entry.second->value &&
           before->second->may_share == entry.second->may_share &&
           before->second->envs == entry.second->envs;
  });
}

void KeepOffCpusBeingLeft(const Draft& draft, const AllocationByResource& allocations,
                          RunOptions& options) {
  const auto given = options.properties.find(std::string(kCpusetCpus));
  if (given == options.properties.end()) {
    return;
  }
  const CpuSet cpus = CpuSet::Parse(given->second).value_or(CpuSet());
  const CpuSet rest = cpus - (CpusBeingLeft(*draft.state, draft.key) - OwnedCpus(allocations));
  if (!rest.Empty() && rest != cpus) {
    given->second = ToString(rest);
  }
}

NumaMask NodesOfOthers(const checkpoint::PodRecord& pod, const std::string& container) {
  NumaMask nodes;
  for (const auto& [name, record] : pod.containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      if (name != container && allocation->hints.has_value()) {
        for (const TopologyHint& hint : *allocation->hints) {
          nodes |= hint.nodes;
        }
      }
    }
  }
  return nodes;
}

void NameTogether(std::vector<Draft>& drafts) {
  for (Draft& draft : drafts) {
    for (const Draft& other : drafts) {
      if (&other != &draft) {
        draft.explanation.together.push_back(other.demand.container);
      }
    }
  }
}

checkpoint::ContainerRecord RecordOf(const Draft& draft, const std::string& skipped) {
  // Kubelet's update of a resize may have overwritten applied values.
  const checkpoint::ContainerRecord before =
      draft.is_reviewed ? *draft.known : checkpoint::ContainerRecord();
  return {.type = draft.demand.type,
          .index = draft.demand.index,
          .restartable_init = draft.demand.restartable_init,
          .requests = ServedRequests(draft),
          .limits = draft.demand.limits,
          .request_source = draft.demand.source,
          .runtime_class = draft.demand.runtime_class,
          .skipped = skipped,
          .allocations = draft.explanation.allocations,
          .origins = draft.origins,
          .classes = draft.known == nullptr ? Shared(ToRecord(draft.explanation.classes))
                                            : draft.known->classes,
          .applied = before.applied,
          .applied_to = before.applied_to};
}

std::string ReasonUnserved(const Draft& draft) {
  return draft.explanation.awaited.empty()
             ? "no plugin serves what it requests"
             : "the plugins of its requests are not running: it is placed when they return";
}

checkpoint::DecisionTrace TraceOf(const Draft& draft, std::chrono::system_clock::time_point time) {
  return {.key = draft.key,
          .pod_namespace = draft.demand.pod.pod_namespace,
          .pod_name = draft.demand.pod.name,
          .time = time,
          .admitted = draft.explanation.result == "admitted"};
}

std::string_view RefusalReason(const Status& cause, const Draft& failed) {
  if (failed.bad_answer) {
    return "plugin_fault";
  }
  switch (cause.code()) {
    case StatusCode::kInternal:
      return "plugin_fault";
    case StatusCode::kUnavailable:
      return "plugin_away";
    case StatusCode::kDeadlineExceeded:
      return "too_slow";
    case StatusCode::kResourceExhausted:
      return "no_room";
    case StatusCode::kInvalidArgument:
    case StatusCode::kPermissionDenied:
      return "request";
    default:
      return "other";
  }
}

std::optional<ContainerKey> PodToEnd(const placement::ContainerDemand& asked, const Draft& failed,
                                     std::string_view reason,
                                     const placement::AdmissionOptions& options) {
  const auto rules = options.drivers.find(failed.explanation.driver.name);
  const placement::RejectAs as = rules == options.drivers.end()
                                     ? options.reject_as
                                     : rules->second.reject_as.value_or(options.reject_as);
  const bool is_new = failed.known == nullptr && !failed.explanation.after_the_fact;
  const bool stays = reason == "no_room" || reason == "request" || reason == "other";
  return as == placement::RejectAs::kFail && is_new && stays && !IsStaticPod(asked.pod)
             ? std::optional(asked.key())
             : std::nullopt;
}

Status Rejection(const Status& cause, const placement::ContainerDemand& asked, const Draft& failed,
                 const Whole& whole) {
  std::string context = failed.known != nullptr ? "cannot resize " : "cannot admit ";
  context += NameOf(asked);
  if (&failed == whole.draft.get()) {
    context += ": its containers together";
  } else if (failed.demand.container != asked.container) {
    context += ": container " + Quoted(failed.demand.container);
  }
  if (!failed.failed_resource.empty()) {
    context += ": resource " + failed.failed_resource;
  }
  return Annotate(cause, context);
}

namespace {

// A driver's CPUs can be applied to a running container. Its variables and annotations stay on
// record for the next instance, and the explanation says that this instance lacks them.
void TellOfDriversVariables(Draft& draft) {
  if (!draft.driver.has_value()) {
    return;
  }
  const std::string& driver = draft.driver->resource;
  const auto given = draft.explanation.allocations.find(driver);
  const auto has = [&](const AllocationByResource& allocations) {
    const auto before = allocations.find(driver);
    return before != allocations.end() && before->second->envs == given->second->envs &&
           before->second->annotations == given->second->annotations;
  };
  if (given != draft.explanation.allocations.end() &&
      (draft.known == nullptr || !has(draft.known->allocations)) &&
      !WasMadeWith(draft.demand.made_with, given->second)) {
    draft.explanation.too_late.push_back("variables of " + driver);
    log::Warning("running container lacks the variables of its compute driver",
                 {{"container", NameOf(draft.demand)},
                  {"driver", driver},
                  {"cure", "restart the container"}});
  }
}

}  // namespace

void LeaveOutWhatCameTooLate(Draft& draft) {
  for (const ContainerRequest& request : draft.requests) {
    const std::string& plugin = request.resource;
    AllocationByResource& allocations = draft.explanation.allocations;
    const auto own = allocations.find(plugin);
    if (own == allocations.end() || !IsForNewOnly(own->second) ||
        WasMadeWith(draft.demand.made_with, own->second)) {
      continue;
    }
    draft.too_late.push_back(plugin);
    std::erase_if(allocations, [&](const auto& entry) {
      const auto origin = draft.origins.find(entry.first);
      return origin != draft.origins.end() && origin->second.plugin == plugin;
    });
    std::erase_if(draft.origins, [&](const auto& entry) { return entry.second.plugin == plugin; });
    draft.explanation.too_late.push_back(plugin);
  }
  TellOfDriversVariables(draft);
}

std::map<std::string, std::vector<std::string>> GivenTooLate(const std::vector<Draft>& drafts) {
  std::map<std::string, std::vector<std::string>> too_late;
  for (const Draft& draft : drafts) {
    if (!draft.too_late.empty()) {
      too_late[draft.demand.container] = draft.too_late;
      log::Warning("running container lacks resources that only a new container can get",
                   {{"container", NameOf(draft.demand)},
                    {"resources", fmt::format("{}", fmt::join(draft.too_late, ", "))},
                    {"cure", "delete the pod, so that it is recreated"}});
    }
  }
  return too_late;
}

placement::ContainerDemand SubjectOf(const placement::ContainerDemand& demand) {
  placement::ContainerDemand subject = {.pod = {.uid = demand.pod.uid,
                                                .pod_namespace = demand.pod.pod_namespace,
                                                .name = demand.pod.name,
                                                .role = demand.pod.role,
                                                .type = demand.pod.type,
                                                .qos_class = demand.pod.qos_class},
                                        .container = demand.container,
                                        .type = demand.type,
                                        .requests = demand.requests,
                                        .source = demand.source};
  if (!rules::IgnoredQosKeys(demand.pod.annotations, rules::NodeBinding::kNone).empty()) {
    subject.pod.annotations = demand.pod.annotations;
  }
  return subject;
}

}  // namespace qrm::manager
