// The runtime's events, one after the other.
#include "manager/pods/pod_events.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "api/base/log.h"
#include "manager/pods/applied_values.h"
#include "manager/reconcile/plan.h"
#include "manager/runtime/run_options.h"

namespace qrm::manager {
namespace {

using checkpoint::Change;
using checkpoint::ContainerRecord;

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

// Kubelet resizes a container in place; our own updates change cpusets only.
bool IsResize(const LinuxResources& requested) {
  return requested.cpu_shares.has_value() || requested.memory_limit_bytes.has_value();
}

RuntimeContainer Resized(RuntimeContainer container, const LinuxResources& requested) {
  LinuxResources& resources = container.resources;
  if (requested.cpu_shares.has_value()) {
    resources.cpu_shares = requested.cpu_shares;
  }
  if (requested.memory_limit_bytes.has_value()) {
    resources.memory_limit_bytes = requested.memory_limit_bytes;
  }
  return container;
}

}  // namespace

PodEvents::PodEvents(Parts parts, std::chrono::milliseconds admission_deadline)
    : parts_(std::move(parts)),
      admission_deadline_(admission_deadline),
      unplaced_({.state = parts_.state,
                 .source = parts_.source,
                 .admitter = parts_.admitter,
                 .live = parts_.live,
                 .reconcile_soon = parts_.reconcile_soon,
                 .stands_aside = parts_.stands_aside},
                admission_deadline) {}

void PodEvents::RetryUnplaced() {
  parts_.state.Post([this] { unplaced_.TryAll(); });
}

void PodEvents::OnDiskReturned() {
  if (parts_.live.synchronized()) {
    RemoveGonePods();
    unplaced_.TryAll();
  }
}

void PodEvents::OnConnected(const RuntimeInfo& /*runtime*/) {}

void PodEvents::OnDisconnected(const Status& /*cause*/) {
  parts_.on_disconnected();
}

void PodEvents::OnSynchronize(std::vector<RuntimePod> pods,
                              std::vector<RuntimeContainer> containers, UpdatesReply reply) {
  reply(std::vector<ContainerUpdate>{});  // what is wrong, the reconciler mends over CRI

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
  parts_.state.Post([this, known = std::move(known)] { Adopt(known); });
  parts_.on_synchronized();
}

void PodEvents::OnObserved(Observation seen) {
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
  parts_.state.Post([this, fresh = std::move(fresh)] { AdoptObserved(fresh); });
  if (any_has_started) {
    parts_.reconcile_soon();  // what was decided since their creation can be applied now
  }
}

void PodEvents::OnPodStarted(const RuntimePod& pod) {
  parts_.live.AddPod(pod.uid, pod.id);
  parts_.source.Prefetch(pod);
}

void PodEvents::OnPodUpdated(const RuntimePod& /*pod*/) {}

void PodEvents::OnPodStopped(const RuntimePod& pod) {
  parts_.on_pod_stopped(pod);
}

void PodEvents::RemoveEnded() {
  parts_.state.Post([this] { RemoveGonePods(); });
}

void PodEvents::OnPodRemoved(const RuntimePod& pod) {
  // Kubelet replaces a broken sandbox: the pod lives on while it has another one.
  if (!parts_.live.RemovePod(pod.uid, pod.id)) {
    RemoveEnded();
  }
}

void PodEvents::OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                                  AdjustmentReply reply) {
  const auto creation = std::make_shared<const Creation>(Creation{
      std::move(pod), std::move(container), DeadlineAfter(admission_deadline_), std::move(reply)});
  parts_.live.Add(KeyOf(creation->pod, creation->container),
                  {.id = creation->container.id,
                   .pod_id = creation->pod.id,
                   .cgroups_path = creation->container.cgroups_path});
  if (parts_.stands_aside()) {
    parts_.state.Post([this, creation] {
      unplaced_.Add(creation->pod, creation->container);
      creation->reply(ContainerAdjustment{});
    });
    return;
  }
  parts_.source.Find(
      creation->pod, creation->container, creation->deadline,
      [this, creation](StatusOr<ContainerDemand> found) {
        parts_.state.Post([this, creation, found = std::move(found)] { Answer(*creation, found); });
      });
}

void PodEvents::OnUpdateContainer(RuntimePod pod, RuntimeContainer container,
                                  LinuxResources requested, UpdatesReply reply) {
  const auto state = parts_.state.Load();
  const ContainerRecord* record =
      parts_.stands_aside() ? nullptr : state->Find(KeyOf(pod, container));
  const LinuxResources ours = record == nullptr ? LinuxResources() : CpusetOf(*record);
  if (record != nullptr && IsResize(requested)) {
    parts_.source.Find(
        pod, Resized(container, requested), DeadlineAfter(admission_deadline_),
        [this](StatusOr<ContainerDemand> found) {
          if (found.ok()) {
            parts_.state.Post([this, demand = *std::move(found)] { PlaceResized(demand); });
          }
        });
  }
  if (SameCpuset(ours, {}) || SameCpuset(ours, requested)) {
    reply(std::vector<ContainerUpdate>{});
    return;
  }
  NoteContradiction(KeyOf(pod, container), requested, ours);
  reply(std::vector<ContainerUpdate>{{container.id, ours}});
}

void PodEvents::NoteContradiction(const ContainerKey& key, const LinuxResources& requested,
                                  const LinuxResources& ours) {
  const auto note = [&](std::string_view property, const std::string& theirs,
                        const std::string& own) {
    if (!theirs.empty() && !own.empty() && theirs != own) {
      parts_.writes.Note({key, std::string(property), theirs, own});
    }
  };
  note(kCpusetCpus, requested.cpuset_cpus, ours.cpuset_cpus);
  note(kCpusetMems, requested.cpuset_mems, ours.cpuset_mems);
}

void PodEvents::OnContainerStarted(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  parts_.live.MarkStarted(key, container.id);
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(key);
  if (record != nullptr && !PropertiesToApply(*record).empty()) {
    parts_.reconcile_soon();  // its values changed between its creation and its start
  }
}

void PodEvents::OnContainerStopped(const RuntimePod& pod, const RuntimeContainer& container) {
  parts_.live.Remove(KeyOf(pod, container), container.id);
  parts_.writes.Forget(KeyOf(pod, container));
}

void PodEvents::OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  parts_.live.Remove(key, container.id);
  parts_.state.Post([this, key] {
    if (!parts_.live.Find(key).has_value()) {
      unplaced_.Erase(key);
    }
  });
}

void PodEvents::Answer(const Creation& creation, const StatusOr<ContainerDemand>& found) {
  StatusOr<ContainerAdjustment> adjustment = Create(creation, found);
  if (!adjustment.ok()) {
    const auto& [pod, container, deadline, reply] = creation;
    parts_.live.Remove(KeyOf(pod, container), container.id);
    log::Warning("container refused", {{"error", MessageOf(adjustment.status())}});
  }
  creation.reply(std::move(adjustment));
}

StatusOr<ContainerAdjustment> PodEvents::Create(const Creation& creation,
                                                const StatusOr<ContainerDemand>& found) {
  const auto& [pod, container, deadline, reply] = creation;
  if (found.status().code() == StatusCode::kInvalidArgument) {
    log::Warning("container left alone", {{"error", MessageOf(found.status())}});
    return ContainerAdjustment{};
  }
  QRM_RETURN_IF_ERROR(found.status());
  if (!parts_.live.HasPod(pod.uid)) {  // nobody would ever remove its record
    return Errorf(StatusCode::kAborted,
                  "cannot admit container {} of pod {}/{}: the pod was removed while its spec was "
                  "looked for; create it again",
                  container.name, pod.pod_namespace, pod.name);
  }
  const ContainerDemand demand = WithoutLive(*found, parts_.live);
  QRM_ASSIGN_OR_RETURN(const RunOptions options,
                       parts_.admitter.Admit(demand, Admitter::Moment::kAtCreation, deadline));
  if (parts_.state.Load()->Find(demand.key()) == nullptr) {
    unplaced_.Add(pod, container);
  } else if (OwnsCpusAlone(demand.key())) {
    parts_.reconcile_soon();  // others have to leave these CPUs
  }
  if (demand.type == ContainerType::kMain) {
    parts_.state.Post([this, uid = pod.uid] { ReleaseInitContainers(uid); });
  }
  return ToAdjustment(options);
}

// They have ended when the pod's main container is created: what they hold serves others, as
// kubelet's managers have it. Should they run again, they are placed again.
void PodEvents::ReleaseInitContainers(const std::string& pod_uid) {
  const auto state = parts_.state.Load();
  const checkpoint::PodRecord* pod = state->FindPod(pod_uid);
  if (pod == nullptr) {
    return;
  }
  std::vector<ContainerKey> ended;
  for (const auto& [name, record] : pod->containers) {
    if (record->type == ContainerType::kInit && !parts_.live.Find({pod_uid, name}).has_value()) {
      ended.push_back({pod_uid, name});
    }
  }
  if (const Status removed = parts_.releaser.RemoveContainers(ended); !removed.ok()) {
    log::Warning("init containers not released", {{"error", MessageOf(removed)}});
  }
}

void PodEvents::Adopt(const std::vector<PodAndContainer>& containers) {
  RemoveGonePods();
  unplaced_.Clear();
  const auto state = parts_.state.Load();
  Change change;
  for (const auto& [pod, container] : containers) {
    const ContainerKey key = KeyOf(pod, container);
    if (state->Find(key) == nullptr) {
      unplaced_.Add(pod, container);
    } else {
      ForgetOthersCpuset(*state, key, container.resources, change);
    }
  }
  CommitDistrust(change);
  unplaced_.TryAll();
  parts_.reconcile_soon();
}

void PodEvents::AdoptObserved(const std::vector<PodAndContainer>& fresh) {
  RemoveGonePods();
  unplaced_.EraseEnded();
  const auto state = parts_.state.Load();
  Change change;
  std::vector<ContainerKey> to_place;
  for (const auto& [pod, container] : fresh) {
    const ContainerKey key = KeyOf(pod, container);
    if (state->Find(key) == nullptr) {
      unplaced_.Add(pod, container);
      to_place.push_back(key);
    } else {
      ForgetAllButCpuset(*state, key, container.resources, change);
    }
  }
  CommitDistrust(change);
  unplaced_.Try(std::move(to_place));
  if (!change.Empty()) {
    parts_.reconcile_soon();
  }
}

void PodEvents::CommitDistrust(const Change& change) {
  if (change.Empty()) {
    return;
  }
  if (const Status saved = parts_.state.Remember(change); !saved.ok()) {
    log::Warning("foreign values not noted", {{"error", MessageOf(saved)}});
  }
}

// Plugins are asked for what has grown; what they cannot give leaves the container as it is.
void PodEvents::PlaceResized(const ContainerDemand& demand) {
  const ContainerKey key = demand.key();
  const auto before = parts_.state.Load();
  if (before->Find(key) == nullptr) {
    return;
  }
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  const Status placed =
      parts_.admitter.Admit(demand, Admitter::Moment::kAfterTheFact, deadline).status();
  if (!placed.ok()) {
    log::Warning("resized container keeps its place", {{"error", MessageOf(placed)}});
  } else if (parts_.state.Load()->Find(key) != before->Find(key)) {
    parts_.reconcile_soon();
  }
}

void PodEvents::RemoveGonePods() {
  std::vector<std::string> gone;
  parts_.state.Load()->ForEachPod([&](const checkpoint::PodRecord& pod) {
    if (!parts_.live.HasPod(pod.meta.uid)) {
      gone.push_back(pod.meta.uid);
    }
  });
  if (gone.empty()) {
    return;
  }
  if (const Status removed = parts_.releaser.RemovePods(gone); !removed.ok()) {
    log::Warning("pods not removed: tried again at the next removal or synchronization",
                 {{"error", MessageOf(removed)}});
  }
  unplaced_.TryAll();  // what did not fit may do so now
  parts_.reconcile_soon();
}

bool PodEvents::OwnsCpusAlone(const ContainerKey& key) const {
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(key);
  if (record == nullptr) {
    return false;
  }
  return std::any_of(record->allocations.begin(), record->allocations.end(),
                     [](const auto& entry) { return entry.second.exclusive; });
}

}  // namespace qrm::manager
