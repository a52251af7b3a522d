// Turns what the runtime tells into admissions, removals and repairs.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/observer.h"
#include "manager/pods/unplaced.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/runtime/live_containers.h"
#include "manager/runtime/runtime_events.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// The runtime's events, as the daemon answers them. A creation is decided on the state loop; an
/// update of somebody else keeps our cpusets; after a synchronization, pods that are gone are
/// removed, containers that started without us are admitted after the fact, and values that differ
/// from ours are applied again.
///
/// Threads: the RuntimeEvents on the I/O loop, RetryUnplaced any.
class PodEvents final : public RuntimeEvents {
 public:
  /// All outlive the events; `reconcile_soon` may be called from any thread, the others are called
  /// on the I/O loop.
  struct Parts {
    StateLoop& state;
    DemandSource& source;
    Admitter& admitter;
    Releaser& releaser;
    LiveContainers& live;
    ForeignWrites& writes;
    std::function<void()> reconcile_soon;
    std::function<void()> on_synchronized = [] {};
    std::function<void()> on_disconnected = [] {};
    /// Somebody else pins this node's containers: they are noted, and nothing is done to them. May
    /// be called from any thread.
    std::function<bool()> stands_aside = [] { return false; };
    /// A sandbox has stopped; whether its pod has ended, too, others find out.
    std::function<void(const RuntimePod&)> on_pod_stopped = [](const RuntimePod&) {};
  };
  PodEvents(Parts parts, std::chrono::milliseconds admission_deadline);

  /// Tries again to admit the containers that run without an admission, as when a plugin is back or
  /// new.
  void RetryUnplaced();
  /// Removes the pods that `live` no longer has. Threads: any.
  void RemoveEnded();
  /// Does what a disk that refused changes has held up. Threads: the state loop.
  void OnDiskReturned();

  /// What CRI showed while NRI is away: new containers are admitted after the fact, those of pods
  /// that are gone removed.
  void OnObserved(Observation seen);

  void OnConnected(const RuntimeInfo& runtime) override;
  void OnDisconnected(const Status& cause) override;
  void OnSynchronize(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers,
                     UpdatesReply reply) override;
  void OnPodStarted(const RuntimePod& pod) override;
  void OnPodUpdated(const RuntimePod& pod) override;
  void OnPodStopped(const RuntimePod& pod) override;
  void OnPodRemoved(const RuntimePod& pod) override;
  void OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                         AdjustmentReply reply) override;
  void OnUpdateContainer(RuntimePod pod, RuntimeContainer container, LinuxResources requested,
                         UpdatesReply reply) override;
  void OnContainerStarted(const RuntimePod& pod, const RuntimeContainer& container) override;
  void OnContainerStopped(const RuntimePod& pod, const RuntimeContainer& container) override;
  void OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) override;

 private:
  using PodAndContainer = std::pair<RuntimePod, RuntimeContainer>;
  /// A creation that the runtime waits for.
  struct Creation {
    RuntimePod pod;
    RuntimeContainer container;
    Deadline deadline;
    AdjustmentReply reply;
  };

  // On the I/O loop.
  void NoteContradiction(const ContainerKey& key, const LinuxResources& requested,
                         const LinuxResources& ours);

  // On the state loop.
  void Answer(const Creation& creation, const StatusOr<ContainerDemand>& found);
  StatusOr<ContainerAdjustment> Create(const Creation& creation,
                                       const StatusOr<ContainerDemand>& found);
  void ReleaseInitContainers(const std::string& pod_uid);
  void Adopt(const std::vector<PodAndContainer>& containers);
  void AdoptObserved(const std::vector<PodAndContainer>& fresh);
  void CommitDistrust(const checkpoint::Change& change);
  void PlaceResized(const ContainerDemand& demand);
  void RemoveGonePods();
  bool OwnsCpusAlone(const ContainerKey& key) const;

  const Parts parts_;
  const std::chrono::milliseconds admission_deadline_;
  Unplaced unplaced_;  // used on the state loop only
};

}  // namespace qrm::manager
