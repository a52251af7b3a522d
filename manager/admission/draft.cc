// Relates the drafts of one pod to each other, and turns drafts into traces and rejections.
#include "manager/admission/draft.h"

#include "checkpoint/decision_trace.h"
#include "manager/admission/class_step.h"
#include "manager/admission/kept_draft.h"

namespace qrm::manager {

const std::string& Draft::Blamed() const {
  const auto origin = origins.find(failed_resource);
  return origin == origins.end() ? failed_resource : origin->second.plugin;
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
                                            : draft.known->classes};
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

Status Rejection(const Status& cause, const placement::ContainerDemand& asked, const Draft& failed,
                 const Whole& whole) {
  std::string context = failed.known != nullptr ? "cannot resize " : "cannot admit ";
  context += NameOf(asked);
  if (&failed == whole.draft.get()) {
    context += ": its containers together";
  } else if (failed.demand.container != asked.container) {
    context += ": container " + failed.demand.container;
  }
  if (!failed.failed_resource.empty()) {
    context += ": resource " + failed.failed_resource;
  }
  return Annotate(cause, context);
}

}  // namespace qrm::manager
