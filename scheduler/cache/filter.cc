// Asks the resources of a node one after another.
#include "scheduler/cache/filter.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::scheduler {
namespace {

/// What `resources` say, which are those of the node or what they could be.
Refusal Ask(const Resources& resources, const HandleRegistry& handles, const Pod& pod) {
  for (const auto& [type, handle] : handles.handles()) {
    const auto resource = resources.find(type);
    if (resource == resources.end()) {
      if (handle->Wants(pod)) {
        return {.why = fmt::format("the node has not reported its {}", type)};
      }
      continue;
    }
    const Admission admission = resource->second->AdmitPod(pod);
    if (!admission.Fits()) {
      return {
          .why = admission.refusal.empty() ? fmt::format("not enough {}", type) : admission.refusal,
          .requested = admission.requested,
          .available = admission.available};
    }
  }
  return {};
}

/// Those that have the node before `pod`; pods of equal priority do, as for kube-scheduler.
std::vector<PodPtr> NominatedBeside(const Snapshot& snapshot, const Pod& pod,
                                    const std::string& node) {
  std::vector<PodPtr> pods;
  if (snapshot.nominated != nullptr) {
    if (const auto found = snapshot.nominated->find(node); found != snapshot.nominated->end()) {
      std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(pods),
                   [&](const PodPtr& other) {
                     return other->uid != pod.uid && other->priority >= pod.priority;
                   });
    }
  }
  return pods;
}

bool IsKnown(const NodeView* view) {
  return view != nullptr && view->node != nullptr;
}

}  // namespace

Status CheckSynced(const Snapshot& snapshot) {
  if (snapshot.missing.empty()) {
    return OkStatus();
  }
  return Errorf(StatusCode::kUnavailable,
                "cannot judge nodes: the list of {} has not come yet; try again in a moment",
                snapshot.missing);
}

Refusal JudgeNode(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                  const std::string& node) {
  const NodeView* const view = snapshot.Find(node);
  if (!IsKnown(view)) {
    return {.why = "the node is not known yet", .lasts = true};
  }
  Refusal refusal;
  if (NominatedBeside(snapshot, pod, node).empty()) {
    refusal = Ask(view->resources, handles, pod);
  } else {
    WhatIf with(snapshot, handles, node);
    with.AddNominatedBeside(pod);
    refusal = with.Judge(pod);
  }
  if (!refusal.why.empty()) {
    static const Resources none;
    refusal.lasts = !Ask(view->bare == nullptr ? none : *view->bare, handles, pod).why.empty();
  }
  return refusal;
}

std::string RefusalOf(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                      const std::string& node) {
  return JudgeNode(snapshot, handles, pod, node).why;
}

WhatIf::WhatIf(const Snapshot& snapshot, const HandleRegistry& handles, const std::string& node)
    : snapshot_(snapshot), handles_(handles), node_(node) {
  const NodeView* const view = snapshot.Find(node);
  if (!IsKnown(view)) {
    return;
  }
  view_.node = view->node;
  for (const auto& [type, resource] : view->resources) {
    copies_.push_back(resource->Clone());
    view_.resources[type] = copies_.back();
  }
}

void WhatIf::AddNominatedBeside(const Pod& pod) {
  for (const PodPtr& other : NominatedBeside(snapshot_, pod, node_)) {
    Add(*other);
  }
}

Refusal WhatIf::Judge(const Pod& pod) const {
  return view_.node == nullptr ? Refusal{.why = "the node is not known yet", .lasts = true}
                               : Ask(view_.resources, handles_, pod);
}

int ScoreOf(const Snapshot& snapshot, const Pod& pod, const std::string& node) {
  const NodeView* const view = snapshot.Find(node);
  if (view == nullptr) {
    return 0;
  }
  int sum = 0;
  int count = 0;
  for (const auto& [type, resource] : view->resources) {
    if (const std::optional<int> score = resource->Score(pod); score.has_value()) {
      sum += *score;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

StatusOr<StringMap> DecisionOf(const Snapshot& snapshot, const Pod& pod, const std::string& node) {
  const NodeView* const view = snapshot.Find(node);
  StringMap decision;
  if (view == nullptr) {
    return decision;
  }
  for (const auto& [type, resource] : view->resources) {
    QRM_ASSIGN_OR_RETURN(const StringMap part, resource->Decide(pod));
    for (const auto& [key, value] : part) {
      if (!decision.emplace(key, value).second) {
        return Errorf(StatusCode::kInternal,
                      "cannot decide for pod {}/{}: two resources write annotation {}; give one "
                      "of them another key",
                      pod.pod_namespace, pod.name, key);
      }
    }
  }
  return decision;
}

}  // namespace qrm::scheduler
