// Turns lists into the table of live containers, and finds those that are new in it.
#include "manager/pods/inventory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace qrm::manager {
namespace {

bool Runs(const RuntimeContainer& container) {
  return container.state == RuntimeContainerState::kRunning ||
         container.state == RuntimeContainerState::kPaused;
}

bool IsLive(const RuntimeContainer& container) {
  return Runs(container) || container.state == RuntimeContainerState::kCreated;
}

std::map<std::string, std::set<std::string>> SandboxesByUid(const std::vector<RuntimePod>& pods) {
  std::map<std::string, std::set<std::string>> ids;
  for (const RuntimePod& pod : pods) {
    ids[pod.uid].insert(pod.id);
  }
  return ids;
}

std::map<std::string, const RuntimePod*> ById(const std::vector<RuntimePod>& pods) {
  std::map<std::string, const RuntimePod*> by_id;
  for (const RuntimePod& pod : pods) {
    by_id[pod.id] = &pod;
  }
  return by_id;
}

}  // namespace

void Inventory::OnSynchronized(const std::vector<RuntimePod>& pods,
                               std::vector<RuntimeContainer> containers) {
  const std::map<std::string, const RuntimePod*> pod_by_id = ById(pods);
  std::map<ContainerKey, LiveContainer> live;
  std::vector<PodAndContainer> known;
  for (RuntimeContainer& container : containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end() || !IsLive(container)) {
      continue;
    }
    LiveContainer& latest = live[KeyOf(*pod->second, container)];
    if (!latest.started || Runs(container)) {  // of two with one name, the one that runs
      latest = {container.id, container.pod_id, Runs(container), container.cgroups_path};
    }
    known.emplace_back(*pod->second, std::move(container));
  }
  parts_.live.Reset(SandboxesByUid(pods), std::move(live));
  placer_.Adopt(std::move(known));
}

void Inventory::OnObserved(Observation seen) {
  const std::map<std::string, const RuntimePod*> pod_by_id = ById(seen.pods);
  // Of two with one name, the one that runs.
  std::stable_partition(seen.containers.begin(), seen.containers.end(), Runs);
  std::map<ContainerKey, LiveContainer> live;
  std::vector<PodAndContainer> fresh;
  bool any_has_started = false;
  for (RuntimeContainer& container : seen.containers) {
    const RuntimePod& pod = *pod_by_id.at(container.pod_id);
    const ContainerKey key = KeyOf(pod, container);
    if (key.pod_uid.empty() || key.container.empty()) {
      continue;  // not of a Kubernetes pod
    }
    const std::optional<LiveContainer> known = parts_.live.Find(key);
    const bool is_known = known.has_value() && known->id == container.id;
    const std::string& path = is_known ? known->cgroups_path : container.cgroups_path;
    const bool runs = Runs(container);
    if (!live.emplace(key, LiveContainer{container.id, container.pod_id, runs, path}).second) {
      continue;
    }
    if (!is_known) {
      fresh.emplace_back(pod, std::move(container));
    } else if (runs && !known->started) {
      any_has_started = true;
    }
  }
  parts_.live.Reset(SandboxesByUid(seen.pods), std::move(live), seen.doubtful);
  placer_.AdoptObserved(std::move(fresh));
  if (any_has_started) {
    parts_.reconciler.Trigger();  // what was decided since their creation can be applied now
  }
}

}  // namespace qrm::manager
