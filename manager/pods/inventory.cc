// Turns lists into the table of live containers, and finds those that are new in it.
#include "manager/pods/inventory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace qrm::manager {
namespace {

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
  std::vector<std::pair<ContainerKey, uint32_t>> ended;  // and their attempts
  for (RuntimeContainer& container : containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end()) {
      continue;
    }
    if (!IsLive(container)) {
      ended.emplace_back(KeyOf(*pod->second, container), container.attempt);
      continue;
    }
    LiveContainer& latest = live[KeyOf(*pod->second, container)];
    if (!latest.started || Runs(container)) {  // of two with one name, the one that runs
      latest = {container.id, container.pod_id, Runs(container), container.cgroups_path,
                container.attempt};
    }
    known.emplace_back(*pod->second, std::move(container));
  }
  parts_.live.Reset(SandboxesByUid(pods), std::move(live));
  for (const auto& [key, attempt] : ended) {
    parts_.live.NoteEnded(key, attempt);
  }
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
    const LiveContainer now{container.id, container.pod_id, runs, path, container.attempt};
    if (!live.emplace(key, now).second) {
      continue;
    }
    if (!is_known) {
      fresh.emplace_back(pod, std::move(container));
    } else if (runs && !known->started) {
      any_has_started = true;
    }
  }
  // A stopped sandbox of a pod that is forgotten would only be forgotten once more.
  const auto state = parts_.state.Load();
  std::erase_if(seen.pods, [&](const RuntimePod& pod) {
    const auto first = live.lower_bound({pod.uid, ""});
    const bool has_container = first != live.end() && first->first.pod_uid == pod.uid;
    return !pod.ready && !has_container && state->FindPod(pod.uid) == nullptr;
  });
  parts_.live.Reset(SandboxesByUid(seen.pods), std::move(live), seen.doubtful);
  ended_.OnListed(seen.pods);
  placer_.AdoptObserved(std::move(fresh));
  if (any_has_started) {
    parts_.reconciler.Trigger();  // what was decided since their creation can be applied now
  }
}

bool Inventory::OnListed(const RuntimeList& list) {
  const std::map<std::string, const RuntimePod*> pod_by_id = ById(list.pods);
  bool any_has_started = false;
  for (const RuntimeContainer& container : list.containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end()) {
      continue;
    }
    const ContainerKey key = KeyOf(*pod->second, container);
    if (Runs(container)) {
      any_has_started = parts_.live.MarkStarted(key, container.id) || any_has_started;
    } else if (container.state == RuntimeContainerState::kStopped) {
      Forget(key, container.id);
      parts_.live.NoteEnded(key, container.attempt);
    }
  }
  const bool all_are_listed = FindRemovedContainers(list.containers);
  ended_.OnListed(list.pods, list.asked_at);
  if (any_has_started) {
    parts_.reconciler.Trigger();
  }
  return ended_.FindRemoved(list.pods) && all_are_listed;
}

// As for sandboxes: one that is missing once may be newer than the list. One that has not started
// may be missing for as long as the runtime takes to make it.
bool Inventory::FindRemovedContainers(const std::vector<RuntimeContainer>& containers) {
  std::set<std::string> ids;
  for (const RuntimeContainer& container : containers) {
    ids.insert(container.id);
  }
  const std::set<std::string> missing_before = std::exchange(missing_, {});
  for (const auto& [key, known] : parts_.live.All()) {
    if (!known.started || ids.contains(known.id)) {
      continue;
    }
    if (missing_before.contains(known.id)) {
      Forget(key, known.id);
    } else {
      missing_.insert(known.id);
    }
  }
  return missing_.empty();
}

void Inventory::Forget(const ContainerKey& key, const std::string& id) {
  const std::optional<LiveContainer> known = parts_.live.Find(key);
  if (known.has_value() && known->id == id) {
    parts_.live.Remove(key, id);
    parts_.writes.Forget(key);
    placer_.Forget(key);
  }
}

}  // namespace qrm::manager
