// Asks the resources of a node one after another.
#include "scheduler/cache/filter.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::scheduler {
namespace {

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

PodJudge::PodJudge(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                   HandleCall& call)
    : snapshot_(snapshot), handles_(handles), pod_(pod), call_(call) {
  for (const auto& [type, handle] : handles.handles()) {
    if (!handles.guard().IsBlocked(type)) {
      handles.guard().Run(type, call_, [&, &asked = *handle, &name = type] {
        if (auto data = asked.PreFilter(pod, snapshot); data != nullptr) {
          data_[name] = std::move(data);
        }
      });
    }
  }
}

Refusal PodJudge::Judge(const std::string& node) const {
  const NodeView* const view = snapshot_.Find(node);
  if (!IsKnown(view)) {
    return {.why = "the node is not known yet", .lasts = true};
  }
  Refusal refusal;
  if (NominatedBeside(snapshot_, pod_, node).empty()) {
    refusal = Ask(*view, view->resources);
  } else {
    WhatIf with(snapshot_, handles_, node);
    with.AddNominatedBeside(pod_);
    refusal = with.Judge(pod_);
  }
  if (!refusal.why.empty()) {
    static const Resources none;
    refusal.lasts = !Ask(*view, view->bare == nullptr ? none : *view->bare).why.empty();
  }
  return refusal;
}

Refusal PodJudge::Ask(const NodeView& view, const Resources& resources) const {
  HandleGuard& guard = handles_.guard();
  const bool is_silent = view.heard.has_value() && now_ - *view.heard > guard.published_within;
  for (const auto& [type, handle] : handles_.handles()) {
    bool is_unknown = false;
    bool is_old = false;
    Admission admission;
    const auto ask = [&, &asked = *handle, &name = type] {
      if (const auto resource = resources.find(name); resource != resources.end()) {
        admission = resource->second->AdmitPod(pod_);
        is_old = is_silent && asked.IsPublishedByNode() && asked.Wants(pod_);
      } else {
        is_unknown = asked.Wants(pod_);
      }
      if (admission.Fits()) {
        Admission more = asked.Filter(pod_, {*view.node, resources, snapshot_, DataOf(name)});
        admission = more.Fits() ? admission : std::move(more);
      }
    };
    if (guard.IsBlocked(type) || !guard.Run(type, call_, ask)) {
      if (guard.failing == WhenUnknown::kFilter) {
        return {.why = fmt::format("the resource {} does not work", type)};
      }
      continue;
    }
    if ((is_unknown || is_old) && &resources == &view.resources) {
      guard.CountUnknown(type);
    }
    if (is_unknown && guard.unknown == WhenUnknown::kFilter) {
      return {.why = fmt::format("the node has not reported its {}", type)};
    }
    if (is_old && guard.unknown == WhenUnknown::kFilter) {
      return {.why = fmt::format(
                  "the node's qrmd is silent, so its {} may be old; see whether it runs", type)};
    }
    if (!admission.Fits()) {
      return {
          .why = admission.refusal.empty() ? fmt::format("not enough {}", type) : admission.refusal,
          .requested = admission.requested,
          .available = admission.available};
    }
  }
  return {};
}

const PodData* PodJudge::DataOf(const std::string& type) const {
  const auto found = data_.find(type);
  return found == data_.end() ? nullptr : found->second.get();
}

int PodJudge::ScoreOf(const std::string& node) const {
  const NodeView* const view = snapshot_.Find(node);
  if (!IsKnown(view)) {
    return 0;
  }
  int sum = 0;
  int count = 0;
  const auto add = [&](const std::string& type, auto ask) {
    std::optional<int> score;
    if (!handles_.guard().IsBlocked(type) &&
        handles_.guard().Run(type, call_, [&] { score = ask(); }) && score.has_value()) {
      sum += *score;
      ++count;
    }
  };
  for (const auto& [type, resource] : view->resources) {
    add(type, [&, &asked = *resource] { return asked.Score(pod_); });
  }
  for (const auto& [type, handle] : handles_.handles()) {
    add(type, [&, &asked = *handle, &name = type] {
      return asked.Score(pod_, {*view->node, view->resources, snapshot_, DataOf(name)});
    });
  }
  return count == 0 ? 0 : sum / count;
}

Refusal JudgeNode(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                  const std::string& node) {
  HandleCall call;
  return PodJudge(snapshot, handles, pod, call).Judge(node);
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
  view_.heard = view->heard;
  for (const auto& [type, resource] : view->resources) {
    handles.guard().Run(type, call_, [&, &name = type, &copied = *resource] {
      view_.resources[name] = copies_[name] = copied.Clone();
    });
  }
}

void WhatIf::AddNominatedBeside(const Pod& pod) {
  for (const PodPtr& other : NominatedBeside(snapshot_, pod, node_)) {
    Add(*other);
  }
}

Refusal WhatIf::Judge(const Pod& pod) const {
  return view_.node == nullptr
             ? Refusal{.why = "the node is not known yet", .lasts = true}
             : PodJudge(snapshot_, handles_, pod, call_).Ask(view_, view_.resources);
}

int ScoreOf(const Snapshot& snapshot, const Pod& pod, const std::string& node) {
  HandleCall call;
  const HandleRegistry none;
  return PodJudge(snapshot, none, pod, call).ScoreOf(node);
}

StatusOr<StringMap> DecisionOf(const Snapshot& snapshot, const HandleRegistry& handles,
                               const Pod& pod, const std::string& node) {
  const NodeView* const view = snapshot.Find(node);
  StringMap decision;
  if (view == nullptr) {
    return decision;
  }
  for (const auto& [type, resource] : view->resources) {
    StatusOr<StringMap> part =
        Errorf(StatusCode::kInternal, "cannot decide for pod {}/{}: the resource {} does not work",
               pod.pod_namespace, pod.name, type);
    handles.guard().Run(type, handles.guard().writer(),
                        [&, &asked = *resource] { part = asked.Decide(pod); });
    QRM_RETURN_IF_ERROR(part.status());
    for (const auto& [key, value] : *part) {
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
