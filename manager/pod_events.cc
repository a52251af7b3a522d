// The runtime's events, one after the other.
#include "manager/pod_events.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "api/log.h"
#include "manager/admission/run_options.h"
#include "manager/reconcile/plan.h"

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

// The cpuset part of what a record says a container should have.
LinuxResources CpusetOf(const ContainerRecord& record) {
  const LinuxResources wanted = ToLinuxResources(MakeRunOptions(record.allocations).properties);
  LinuxResources cpuset;
  cpuset.cpuset_cpus = wanted.cpuset_cpus;
  cpuset.cpuset_mems = wanted.cpuset_mems;
  return cpuset;
}

bool SameCpuset(const LinuxResources& a, const LinuxResources& b) {
  return a.cpuset_cpus == b.cpuset_cpus && a.cpuset_mems == b.cpuset_mems;
}

// Whether somebody asks for something else than what is ours.
bool Contradicts(const LinuxResources& requested, const LinuxResources& ours) {
  const auto differs = [](const std::string& theirs, const std::string& own) {
    return !theirs.empty() && !own.empty() && theirs != own;
  };
  return differs(requested.cpuset_cpus, ours.cpuset_cpus) ||
         differs(requested.cpuset_mems, ours.cpuset_mems);
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
    : parts_(std::move(parts)), admission_deadline_(admission_deadline) {}

void PodEvents::RetryUnplaced() {
  parts_.state.Post([this] { PlaceUnplaced(); });
}

void PodEvents::OnDiskReturned() {
  if (parts_.live.synchronized()) {
    RemoveGonePods();
    PlaceUnplaced();
  }
}

void PodEvents::OnConnected(const RuntimeInfo& /*runtime*/) {}

void PodEvents::OnDisconnected(const Status& /*cause*/) {}

void PodEvents::OnSynchronize(std::vector<RuntimePod> pods,
                              std::vector<RuntimeContainer> containers, UpdatesReply reply) {
  reply(std::vector<ContainerUpdate>{});  // what is wrong, the reconciler mends over CRI

  std::map<std::string, const RuntimePod*> pod_by_id;
  std::map<std::string, std::set<std::string>> ids_by_uid;
  for (const RuntimePod& pod : pods) {
    pod_by_id[pod.id] = &pod;
    ids_by_uid[pod.uid].insert(pod.id);
  }
  std::map<ContainerKey, LiveContainer> live;
  std::vector<PodAndContainer> known;
  for (RuntimeContainer& container : containers) {
    const auto pod = pod_by_id.find(container.pod_id);
    if (pod == pod_by_id.end() || !IsLive(container)) {
      continue;
    }
    LiveContainer& latest = live[KeyOf(*pod->second, container)];
    if (!latest.started || Runs(container)) {  // of two with one name, the one that runs
      latest = {container.id, container.pod_id, Runs(container)};
    }
    known.emplace_back(*pod->second, std::move(container));
  }
  parts_.live.Reset(std::move(ids_by_uid), std::move(live));
  overruled_.clear();
  parts_.state.Post([this, known = std::move(known)]() mutable { Adopt(std::move(known)); });
  parts_.on_synchronized();
}

void PodEvents::OnPodStarted(const RuntimePod& pod) {
  parts_.live.AddPod(pod.uid, pod.id);
  parts_.source.Prefetch(pod);
}

void PodEvents::OnPodUpdated(const RuntimePod& /*pod*/) {}

void PodEvents::OnPodStopped(const RuntimePod& /*pod*/) {}

void PodEvents::OnPodRemoved(const RuntimePod& pod) {
  // Kubelet replaces a broken sandbox: the pod lives on while it has another one.
  if (!parts_.live.RemovePod(pod.uid, pod.id)) {
    parts_.state.Post([this] { RemoveGonePods(); });
  }
}

void PodEvents::OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                                  AdjustmentReply reply) {
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  parts_.live.Add(KeyOf(pod, container), {.id = container.id, .pod_id = pod.id});
  parts_.state.Post([this, deadline, pod = std::move(pod), container = std::move(container),
                     reply = std::move(reply)] {
    StatusOr<ContainerAdjustment> adjustment = Create(pod, container, deadline);
    if (!adjustment.ok()) {
      parts_.live.Remove(KeyOf(pod, container), container.id);
      log::Warning("container refused", {{"error", MessageOf(adjustment.status())}});
    }
    reply(std::move(adjustment));
  });
}

void PodEvents::OnUpdateContainer(RuntimePod pod, RuntimeContainer container,
                                  LinuxResources requested, UpdatesReply reply) {
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(KeyOf(pod, container));
  const LinuxResources ours = record == nullptr ? LinuxResources() : CpusetOf(*record);
  if (record != nullptr && IsResize(requested)) {
    parts_.state.Post(
        [this, pod, container = Resized(container, requested)] { PlaceResized(pod, container); });
  }
  if (SameCpuset(ours, {}) || SameCpuset(ours, requested)) {
    reply(std::vector<ContainerUpdate>{});
    return;
  }
  if (Contradicts(requested, ours) && overruled_.insert(container.id).second) {
    log::Warning("somebody else pins this container: our values stay",
                 {{"pod", pod.name},
                  {"container", container.name},
                  {"theirs", requested.cpuset_cpus + "/" + requested.cpuset_mems},
                  {"ours", ours.cpuset_cpus + "/" + ours.cpuset_mems},
                  {"remedy", "if it is kubelet, set its CPU and memory manager policies to none"}});
  }
  reply(std::vector<ContainerUpdate>{{container.id, ours}});
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
  overruled_.erase(container.id);
}

void PodEvents::OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  parts_.live.Remove(key, container.id);
  parts_.state.Post([this, key] {
    if (!parts_.live.Find(key).has_value()) {
      unplaced_.erase(key);
    }
  });
}

StatusOr<ContainerAdjustment> PodEvents::Create(const RuntimePod& pod,
                                                const RuntimeContainer& container,
                                                Deadline deadline) {
  const StatusOr<ContainerDemand> found = parts_.source.Find(pod, container, deadline);
  if (found.status().code() == StatusCode::kInvalidArgument) {
    log::Warning("container left alone", {{"cause", MessageOf(found.status())}});
    return ContainerAdjustment{};
  }
  QRM_ASSIGN_OR_RETURN(ContainerDemand demand, found);
  LeaveOutLive(demand.others);
  QRM_ASSIGN_OR_RETURN(const RunOptions options,
                       parts_.admitter.Admit(demand, Admitter::Moment::kAtCreation, deadline));
  if (parts_.state.Load()->Find(demand.key()) == nullptr) {
    unplaced_.insert_or_assign(demand.key(), PodAndContainer(pod, container));
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

// A container that exists is placed for itself: its values must be applied, not only promised.
void PodEvents::LeaveOutLive(std::vector<ContainerDemand>& others) const {
  std::erase_if(others, [this](const ContainerDemand& other) {
    return parts_.live.Find(other.key()).has_value();
  });
}

void PodEvents::Adopt(std::vector<PodAndContainer> containers) {
  RemoveGonePods();
  unplaced_.clear();
  const auto state = parts_.state.Load();
  Change change;
  for (PodAndContainer& entry : containers) {
    const ContainerKey key = KeyOf(entry.first, entry.second);
    if (state->Find(key) == nullptr) {
      unplaced_.insert_or_assign(key, std::move(entry));
    } else {
      DistrustApplied(key, entry.second.resources, change);
    }
  }
  if (!change.Empty()) {
    if (const Status saved = parts_.state.Remember(change); !saved.ok()) {
      log::Warning("foreign values not noted", {{"error", MessageOf(saved)}});
    }
  }
  PlaceUnplaced();
  parts_.reconcile_soon();
}

// What the runtime says differs from what we applied: somebody else wrote it, or the container is a
// new one of the same name. Forgetting it makes the reconciler apply it again.
void PodEvents::DistrustApplied(const ContainerKey& key, const LinuxResources& actual,
                                Change& change) const {
  const auto state = parts_.state.Load();
  const ContainerRecord& record = *state->Find(key);
  if (record.applied.empty() || SameCpuset(ToLinuxResources(record.applied), actual)) {
    return;
  }
  Change::PutContainer put{state->FindPod(key.pod_uid)->meta, key.container, record};
  put.record.applied.erase(std::string(kCpusetCpus));
  put.record.applied.erase(std::string(kCpusetMems));
  change.put_containers.push_back(std::move(put));
}

void PodEvents::PlaceUnplaced() {
  std::vector<ContainerKey> keys;
  for (const auto& [key, entry] : unplaced_) {
    keys.push_back(key);
  }
  std::reverse(keys.begin(), keys.end());
  PlaceNext(std::move(keys));
}

// Each behind what was posted meanwhile, so that no creation waits for all of them.
void PodEvents::PlaceNext(std::vector<ContainerKey> left) {
  if (left.empty()) {
    return;
  }
  parts_.state.Post([this, left = std::move(left)]() mutable {
    Place(left.back());
    left.pop_back();
    PlaceNext(std::move(left));
  });
}

void PodEvents::Place(const ContainerKey& key) {
  const auto found = unplaced_.find(key);
  const std::optional<LiveContainer> live = parts_.live.Find(key);
  if (found == unplaced_.end()) {
    return;
  }
  const auto& [pod, container] = found->second;
  if (!live.has_value() || live->id != container.id) {
    unplaced_.erase(found);
    return;
  }
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  StatusOr<ContainerDemand> demand = parts_.source.Find(pod, container, deadline);
  if (demand.ok()) {
    LeaveOutLive(demand->others);
  }
  const Status placed =
      demand.ok()
          ? parts_.admitter.Admit(*demand, Admitter::Moment::kAfterTheFact, deadline).status()
          : demand.status();
  if (!placed.ok()) {
    log::Warning("running container not placed", {{"error", MessageOf(placed)}});
    return;
  }
  if (parts_.state.Load()->Find(key) == nullptr) {
    return;  // no plugin serves it yet: a daemon that lost its state does not know them all
  }
  unplaced_.erase(found);
  parts_.reconcile_soon();
}

// Plugins are asked for what has grown; what they cannot give leaves the container as it is.
void PodEvents::PlaceResized(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  const auto before = parts_.state.Load();
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  const StatusOr<ContainerDemand> demand = parts_.source.Find(pod, container, deadline);
  if (!demand.ok() || before->Find(key) == nullptr) {
    return;
  }
  const Status placed =
      parts_.admitter.Admit(*demand, Admitter::Moment::kAfterTheFact, deadline).status();
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
