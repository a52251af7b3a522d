// Judges a pod on every node by one snapshot.
#include "scheduler/extender/why.h"

#include <chrono>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "cluster/api_client.h"
#include "scheduler/cache/filter.h"
#include "scheduler/extender/cluster_feed.h"
#include "scheduler/registry/resource_types.h"

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

json RefusalsOf(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod) {
  json refusals = json::object();
  for (const auto& bucket : snapshot.buckets) {
    if (bucket == nullptr) {
      continue;
    }
    for (const auto& [name, view] : *bucket) {
      if (view->node != nullptr) {
        refusals[name] = RefusalOf(snapshot, handles, pod, name);
      }
    }
  }
  return refusals;
}

/// Errors: what any of the lists is in trouble with.
Status TroubleOf(const ClusterFeed& feed) {
  for (const auto& [kind, status] : feed.statuses()) {
    if (!status.trouble.ok()) {
      return Errorf(StatusCode::kUnavailable, "cannot list {}: {}", kind,
                    MessageOf(status.trouble));
    }
  }
  return OkStatus();
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

StatusOr<json> WhyPodWaits(const cluster::ClusterAccess& access,
                           const std::vector<std::string>& resources, const std::string& words) {
  const HandleRegistry handles = RegisterResources(resources);
  boost::asio::io_context io{1};
  QRM_ASSIGN_OR_RETURN(const auto cache, SchedulerCache::Make(handles));
  cluster::ApiClient client(io, access, {.user_agent = "qrmctl"});
  QRM_ASSIGN_OR_RETURN(const auto feed, ClusterFeed::Make(io, client, *cache));
  feed->Start();
  const auto end = steady_clock::now() + kListsWithin;
  while (!CheckSynced(*cache->Load()).ok() && steady_clock::now() < end) {
    io.run_for(kAskPeriod);
    QRM_RETURN_IF_ERROR(TroubleOf(*feed));
  }
  return WhyPodWaits(*cache, words);
}

}  // namespace qrm::scheduler
