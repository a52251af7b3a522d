// Asks the resources of a node one after another.
#include "scheduler/cache/filter.h"

#include <optional>

#include <fmt/format.h>

#include "api/base/errorf.h"

namespace qrm::scheduler {
namespace {

const ExtendedResource* Find(const NodeView& view, const std::string& type) {
  const auto found = view.resources.find(type);
  return found == view.resources.end() ? nullptr : found->second.get();
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

std::string RefusalOf(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                      const std::string& node) {
  const NodeView* const view = snapshot.Find(node);
  if (view == nullptr || view->node == nullptr) {
    return "the node is not known yet";
  }
  for (const auto& [type, handle] : handles.handles()) {
    const ExtendedResource* const resource = Find(*view, type);
    if (resource == nullptr) {
      if (handle->Wants(pod)) {
        return fmt::format("the node has not reported its {}", type);
      }
      continue;
    }
    const Admission admission = resource->AdmitPod(pod);
    if (!admission.Fits()) {
      return admission.refusal.empty() ? fmt::format("not enough {}", type) : admission.refusal;
    }
  }
  return {};
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
