// Judges a pod on every node by one snapshot.
#include "scheduler/extender/why.h"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "scheduler/cache/filter.h"
#include "scheduler/extender/cluster_feed.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

/// 100,000 pods come in half of it.
constexpr std::chrono::seconds kListsWithin{60};
constexpr std::chrono::milliseconds kAskPeriod{20};

struct FoundPod {
  PodPtr pod;
  std::string assumed_on;
};

StatusOr<FoundPod> FindPod(SchedulerCache& cache, const std::string& words) {
  std::vector<PodPtr> pods;
  std::string assumed_on;
  cache.Run([&](const ClusterCache& now) {
    pods = now.FindPods(words);
    assumed_on = pods.size() == 1 ? now.AssumedOn(pods.front()->uid) : std::string();
  });
  if (pods.empty()) {
    return Errorf(StatusCode::kNotFound,
                  "there is no pod {} that has not finished; write its name, NAMESPACE/NAME or UID",
                  words);
  }
  if (pods.size() > 1) {
    return Errorf(StatusCode::kNotFound, "{} pods are named {}; write {}/{} or another namespace",
                  pods.size(), words, pods.front()->pod_namespace, pods.front()->name);
  }
  return FoundPod{std::move(pods.front()), std::move(assumed_on)};
}

/// The sentence of the filter, with its amounts: below 0 where pods have more than there is.
std::string Explained(const Refusal& refusal) {
  return refusal.requested == 0 ? refusal.why
                                : fmt::format("{}: {} requested, {} available", refusal.why,
                                              refusal.requested, refusal.available);
}

json RefusalsOf(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod) {
  json refusals = json::object();
  for (const auto& bucket : snapshot.buckets) {
    if (bucket == nullptr) {
      continue;
    }
    for (const auto& [name, view] : *bucket) {
      if (view->node != nullptr) {
        refusals[name] = Explained(JudgeNode(snapshot, handles, pod, name));
      }
    }
  }
  return refusals;
}

}  // namespace

StatusOr<json> WhyPodWaits(SchedulerCache& cache, const std::string& words) {
  QRM_RETURN_IF_ERROR(CheckSynced(*cache.Load()));
  QRM_ASSIGN_OR_RETURN(const FoundPod found, FindPod(cache, words));
  const Pod& pod = *found.pod;
  json answer = {{"namespace", pod.pod_namespace}, {"pod", pod.name}, {"uid", pod.uid}};
  if (!pod.node.empty() || !found.assumed_on.empty()) {
    answer["state"] = pod.node.empty() ? "is being bound" : "is bound";
    answer["node"] = pod.node.empty() ? found.assumed_on : pod.node;
  } else {
    answer["state"] = "waits";
    answer["node"] = "";
    answer["nodes"] = RefusalsOf(*cache.Load(), cache.handles(), pod);
  }
  return answer;
}

StatusOr<json> WhyPodWaits(const cluster::ClusterAccess& access, const MakeHandles& make_handles,
                           const std::string& words) {
  FreshCache fresh(access, make_handles, "qrmctl");
  QRM_RETURN_IF_ERROR(fresh.Start());
  const auto end = steady_clock::now() + kListsWithin;
  while (!CheckSynced(*fresh.cache().Load()).ok() && steady_clock::now() < end) {
    QRM_RETURN_IF_ERROR(fresh.Follow(kAskPeriod));
  }
  return WhyPodWaits(fresh.cache(), words);
}

}  // namespace qrm::scheduler
