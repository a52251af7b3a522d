// Turns lists into the table of live containers, and finds new containers in them.
#include "manager/pods/inventory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "api/base/log.h"
#include "manager/pods/applied_values.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/reconcile/reconciler.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {
namespace {

std::map<SharedText, std::set<SharedText>> SandboxesByUid(const std::vector<RuntimePod>& pods) {
  std::map<SharedText, std::set<SharedText>> ids;
  for (const RuntimePod& pod : pods) {
    ids[pod.uid].insert(pod.id);
  }
  return ids;
}

using PodsById = std::map<SharedText, const RuntimePod*>;

PodsById ById(const std::vector<RuntimePod>& pods) {
  PodsById by_id;
  for (const RuntimePod& pod : pods) {
    by_id[pod.id] = &pod;
  }
  return by_id;
}

/// A pod of a list, with texts that outlive the list: those of the state if it has them, else
/// copies. Texts of the list itself would lie between its pieces, whose memory could then not be
/// given back.
struct Lasting {
  const RuntimePod* pod = nullptr;
  const checkpoint::PodRecord* record = nullptr;  // null: the pod is not on record
  SharedText uid;
  SharedText id;
};

using LastingById = std::unordered_map<std::string_view, Lasting>;

SharedText Copy(const SharedText& text) {
  return text.str();
}

LastingById FindLasting(const checkpoint::NodeState& state, const std::vector<RuntimePod>& pods) {
  LastingById by_id;
  for (const RuntimePod& pod : pods) {
    const checkpoint::PodRecord* const record = state.FindPod(pod.uid);
    by_id.emplace(pod.id.str(), Lasting{.pod = &pod,
                                        .record = record,
                                        .uid = record == nullptr ? Copy(pod.uid) : record->meta.uid,
                                        .id = Copy(pod.id)});
  }
  return by_id;
}

std::map<SharedText, std::set<SharedText>> SandboxesByUid(const LastingById& pods) {
  std::map<SharedText, std::set<SharedText>> ids;
  for (const auto& [id, pod] : pods) {
    ids[pod.uid].insert(pod.id);
  }
  return ids;
}

/// The container's key, and its entry in the table.
std::pair<ContainerKey, LiveContainer> LastingEntry(const Lasting& pod,
                                                    const RuntimeContainer& container) {
  std::pair<ContainerKey, LiveContainer> entry{KeyOf(*pod.pod, container), ListedAs(container)};
  auto& [key, live] = entry;
  key.pod_uid = pod.uid;
  live.pod_id = pod.id;
  const checkpoint::ContainerRecord* record = nullptr;
  if (pod.record != nullptr && pod.record->containers.contains(key.container)) {
    const auto known = pod.record->containers.find(key.container);
    key.container = known->first;
    record = known->second.get();
  } else {
    key.container = Copy(key.container);
  }
  live.id = record != nullptr && record->applied_to == container.id ? record->applied_to
                                                                    : Copy(container.id);
  return entry;
}

}  // namespace

bool Inventory::OnSynchronized(std::vector<RuntimePod> pods,
                               std::vector<RuntimeContainer> containers) {
  const auto state = parts_.state.Load();
  const LastingById lasting = FindLasting(*state, pods);
  std::map<ContainerKey, LiveContainer> live;
  std::vector<std::pair<ContainerKey, uint32_t>> ended;  // and their attempts
  for (const RuntimeContainer& container : containers) {
    const auto pod = lasting.find(container.pod_id.str());
    if (pod == lasting.end()) {
      continue;
    }
    if (!IsLive(container)) {
      const ContainerKey key = KeyOf(*pod->second.pod, container);
      parts_.live.Remove(key, container.id);
      ended.emplace_back(key, container.attempt);
      continue;
    }
    auto [key, entry] = LastingEntry(pod->second, container);
    LiveContainer& latest = live[std::move(key)];
    if (!latest.started || Runs(container)) {  // of two with the same name, take the running one
      latest = std::move(entry);
    }
  }
  const bool all_are_told = !parts_.live.Reset(SandboxesByUid(lasting), std::move(live));
  for (const auto& [key, attempt] : ended) {
    parts_.live.NoteEnded(key, attempt);
  }
  std::erase_if(containers, [&](const RuntimeContainer& container) {
    return !IsLive(container) || !lasting.contains(container.pod_id.str());
  });
  placer_.Adopt(std::move(pods), std::move(containers));
  return all_are_told;
}

void Inventory::OnObserved(Observation seen) {
  NoteUnknownToCri(seen.unknown_to_cri);
  const PodsById pod_by_id = ById(seen.pods);
  // Of two containers with the same name, take the running one.
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
    LiveContainer now = ListedAs(container);
    now.cgroups_path = path;
    const bool runs = now.started;
    if (!live.emplace(key, std::move(now)).second) {
      continue;
    }
    if (!is_known) {
      fresh.emplace_back(pod, std::move(container));
    } else if (runs && !known->started) {
      any_has_started = true;
    }
  }
  // A stopped sandbox of a forgotten pod would only be forgotten again.
  const auto state = parts_.state.Load();
  std::erase_if(seen.pods, [&](const RuntimePod& pod) {
    const auto first = live.lower_bound({pod.uid, ""});
    const bool has_container = first != live.end() && first->first.pod_uid == pod.uid;
    return !pod.ready && !has_container && state->FindPod(pod.uid) == nullptr;
  });
  parts_.live.Reset(SandboxesByUid(seen.pods), std::move(live), seen.doubtful, ListSource::kCri);
  ended_.OnListed(seen.pods);
  placer_.AdoptObserved(std::move(fresh));
  if (any_has_started) {
    parts_.reconciler.Trigger();  // decisions since their creation can be applied now
  }
}

ListVerdict Inventory::OnListed(const RuntimeList& list) {
  std::set<std::string> ids;
  for (const RuntimePod& pod : list.pods) {
    ids.insert(pod.id);
  }
  const std::set<std::string> unknown_to_cri = parts_.live.UnknownToCri(ids);
  const ListVerdict verdict = NoteUnknownToCri(unknown_to_cri);
  if (!unknown_to_cri.empty()) {
    return verdict;
  }
  const PodsById pod_by_id = ById(list.pods);
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
  return ended_.FindRemoved(list.pods) && all_are_listed ? ListVerdict::kCertain
                                                         : ListVerdict::kUnconfirmed;
}

// A single list may be older than a pod that NRI reported.
ListVerdict Inventory::NoteUnknownToCri(const std::set<std::string>& pods) {
  const bool again = std::exchange(contradicted_, !pods.empty()) && !pods.empty();
  std::string now;
  if (again) {
    const auto state = parts_.state.Load();
    const checkpoint::PodRecord* const one = state->FindPod(*pods.begin());
    now = fmt::format(
        "NRI and CRI contradict each other: CRI lists none of the pods that NRI reported ({}, such "
        "as {}), and their allocations are kept; set cri-socket and nri-socket to sockets of one "
        "runtime",
        pods.size(),
        one == nullptr ? *pods.begin()
                       : fmt::format("{}/{}", one->meta.pod_namespace, one->meta.name));
  }
  if (again && contradiction().empty()) {
    log::Error("the runtime's sockets contradict each other", {{"error", now}});
  }
  {
    const MutexLock lock(mutex_);
    contradiction_ = now;
  }
  if (pods.empty()) {
    return ListVerdict::kCertain;
  }
  return again ? ListVerdict::kContradicted : ListVerdict::kUnconfirmed;
}

void Inventory::OnLeftOutAgain(const RuntimePod& pod, RuntimeContainer container) {
  UseKernelsCpuset(parts_.read_cpuset, container);
  parts_.live.AddUntold(KeyOf(pod, container), ListedAs(container));
  placer_.AdoptObserved({{pod, std::move(container)}});
}

// As for sandboxes, a container that is missing once may be newer than the list. One that has not
// started may be missing for as long as the runtime takes to create it.
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
