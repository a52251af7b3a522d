// Handles the runtime's events: notes changes at once, and passes on what needs a decision.
#include "manager/pods/pod_events.h"

#include <string_view>
#include <utility>

#include "manager/demand/demand_source.h"
#include "manager/pods/applied_values.h"
#include "manager/pods/ended_pods.h"
#include "manager/pods/inventory.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/observer.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/pre_start.h"
#include "manager/pods/sync_audit.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/reconcile/plan.h"
#include "manager/reconcile/reconciler.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/allocation_check.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;

// Kubelet's in-place resizes set these values; qrmd's own updates change cpusets only.
bool IsResize(const LinuxResources& requested) {
  return requested.cpu_shares.has_value() || requested.memory_limit_bytes.has_value();
}

}  // namespace

PodEvents::PodEvents(const NodeParts& parts, Room room) : parts_(parts), room_(room) {}

void PodEvents::OnConnected(const RuntimeInfo& /*runtime*/) {}

void PodEvents::OnDisconnected(const Status& /*cause*/) {
  room_.audit.OnDisconnected();
  room_.observer.OnNriAway();
}

void PodEvents::OnSynchronize(std::vector<RuntimePod> pods,
                              std::vector<RuntimeContainer> containers, UpdatesReply reply) {
  reply(std::vector<ContainerUpdate>{});  // the reconciler repairs wrong values over CRI
  const bool all_are_told = room_.inventory.OnSynchronized(std::move(pods), std::move(containers));
  if (!parts_.stands_aside()) {
    room_.pre_start.TellLate();
  }
  room_.observer.OnNriBack();
  room_.audit.OnSynchronized();
  if (!all_are_told) {
    room_.audit.LookSoon();
  }
}

void PodEvents::OnPodStarted(const RuntimePod& pod) {
  parts_.live.AddPod(pod.uid, pod.id);
  parts_.source.Prefetch(pod);
  parts_.state.Load()->ForEachPodNamed(
      pod.pod_namespace, pod.name, [&](const checkpoint::PodRecord& other) {
        if (other.meta.uid != pod.uid) {
          room_.ended.ReleaseEnded(other.meta.uid);  // the new pod replaces it
        }
      });
}

void PodEvents::OnPodStopped(const RuntimePod& pod) {
  room_.ended.OnStopped(pod.uid, pod.id);
}

void PodEvents::OnPodRemoved(const RuntimePod& pod) {
  // Kubelet replaces a broken sandbox: the pod lives on while it has another sandbox. If another
  // NRI plugin rejected that sandbox after qrmd learned of it, no event follows.
  if (parts_.live.RemovePod(pod.uid, pod.id)) {
    room_.audit.LookSoon();
  } else {
    room_.placer.RemoveGone(pod.uid);
  }
}

void PodEvents::OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                                  AdjustmentReply reply) {
  parts_.live.Add(KeyOf(pod, container), {.id = container.id,
                                          .pod_id = pod.id,
                                          .cgroups_path = container.cgroups_path,
                                          .attempt = container.attempt,
                                          .shown = ShownIn(container.resources, true)});
  room_.placer.Create(std::move(pod), std::move(container), std::move(reply));
}

void PodEvents::OnUpdateContainer(RuntimePod pod, RuntimeContainer container,
                                  LinuxResources requested, UpdatesReply reply) {
  const ContainerKey key = KeyOf(pod, container);
  if (IsResize(requested)) {
    parts_.live.NoteShown(key, container.id, ShownIn(requested, true));
  }
  const auto state = parts_.state.Load();
  const bool aside = parts_.stands_aside();
  if (IsResize(requested) && !aside) {
    room_.placer.CompareRequests(key);
  }
  const ContainerRecord* record = aside ? nullptr : state->Find(key);
  if (record == nullptr) {
    reply(std::vector<ContainerUpdate>{});
    return;
  }
  const CpuSet offline = parts_.machine.OfflineNow();
  const LinuxResources recorded = CpusetOf(*record, offline);
  NoteContradiction(key, requested, recorded);
  // Some of its recorded CPUs may have become exclusive to another container since.
  const LinuxResources ours = CpusetOf(*record, offline | OwnedByOthers(key, *state));
  // The record may return to what the runtime last took, whose CPUs must then be sent again.
  const StringMap& taken = record->AppliedTo(container.id);
  const auto cpus = taken.find(std::string(kCpusetCpus));
  const bool is_other =
      cpus != taken.end() && cpus->second != ours.cpuset_cpus && !SameCpuset(ours, requested);
  if (is_other || !SameCpuset(ours, recorded)) {
    parts_.live.DeferOther(key, container.id);
  }
  NoteUpdate(key, container.id, requested, ours);
  if (SameCpuset(ours, {}) || SameCpuset(ours, requested)) {
    reply(std::vector<ContainerUpdate>{});
  } else {
    reply(std::vector<ContainerUpdate>{{container.id, ours}});
  }
}

/// An owner of these CPUs that is created meanwhile waits until they are written.
void PodEvents::NoteUpdate(const ContainerKey& key, const std::string& id,
                           const LinuxResources& requested, const LinuxResources& ours) {
  const std::string& told = ours.cpuset_cpus.empty() ? requested.cpuset_cpus : ours.cpuset_cpus;
  if (StatusOr<CpuSet> cpus = CpuSet::Parse(told);
      cpus.ok() && !cpus->Empty() && !parts_.live.NoteTold(key, id, *cpus)) {
    room_.placer.NoteUpdate(key, *std::move(cpus));
  }
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

void PodEvents::OnStartContainer(const RuntimePod& pod, const RuntimeContainer& container,
                                 StartReply reply) {
  if (parts_.stands_aside()) {
    reply(OkStatus());
  } else {
    room_.pre_start.Prepare(KeyOf(pod, container), std::move(reply));
  }
}

void PodEvents::OnContainerStarted(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  if (!parts_.live.MarkStarted(key, container.id) && !parts_.live.Find(key).has_value()) {
    // A list that came before its creation may have removed it.
    parts_.live.Add(key, {.id = container.id,
                          .pod_id = pod.id,
                          .started = true,
                          .cgroups_path = container.cgroups_path,
                          .attempt = container.attempt,
                          .shown = ShownIn(container.resources, false)});
  }
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(key);
  if (record != nullptr &&
      (parts_.live.FindDeferred(key, container.id).has_value() ||
       !PropertiesToApply(*record, container.id, parts_.machine.OfflineNow()).empty())) {
    parts_.reconciler.TriggerChanges(key);  // its values changed between creation and start
  }
}

void PodEvents::OnContainerStopped(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  parts_.live.Remove(key, container.id);
  parts_.writes.Forget(key);
  room_.placer.Forget(key);
  if (!parts_.live.HasContainerOf(pod.uid)) {
    room_.audit.LookSoon();  // not every runtime sends an event when the sandbox stops
  }
}

void PodEvents::OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) {
  const ContainerKey key = KeyOf(pod, container);
  parts_.live.Remove(key, container.id);
  room_.placer.Forget(key);
}

}  // namespace qrm::manager
