// Turns the runtime's events into admissions, removals and repairs.
#pragma once

#include <vector>

#include "manager/runtime/runtime_events.h"

namespace qrm::manager {

class EndedPods;
class Inventory;
struct NodeParts;
class Observer;
class PodPlacer;
class PreStart;
class SyncAudit;

/// Answers the runtime's events: the placer decides creations; an update of another program keeps
/// the recorded cpusets; a synchronization ends the observer and begins an audit.
///
/// Threads: the I/O loop.
class PodEvents final : public RuntimeEvents {
 public:
  /// The parts that receive events.
  struct Room {
    PodPlacer& placer;
    Inventory& inventory;
    Observer& observer;
    SyncAudit& audit;
    EndedPods& ended;
    PreStart& pre_start;
  };
  /// All outlive the events.
  PodEvents(const NodeParts& parts, Room room);

  void OnConnected(const RuntimeInfo& runtime) override;
  void OnDisconnected(const Status& cause) override;
  void OnSynchronize(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers,
                     UpdatesReply reply) override;
  void OnPodStarted(const RuntimePod& pod) override;
  void OnPodStopped(const RuntimePod& pod) override;
  void OnPodRemoved(const RuntimePod& pod) override;
  void OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                         AdjustmentReply reply) override;
  void OnUpdateContainer(RuntimePod pod, RuntimeContainer container, LinuxResources requested,
                         UpdatesReply reply) override;
  void OnStartContainer(const RuntimePod& pod, const RuntimeContainer& container,
                        StartReply reply) override;
  void OnContainerStarted(const RuntimePod& pod, const RuntimeContainer& container) override;
  void OnContainerStopped(const RuntimePod& pod, const RuntimeContainer& container) override;
  void OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) override;

 private:
  void NoteUpdate(const ContainerKey& key, const std::string& id, const LinuxResources& requested,
                  const LinuxResources& ours);
  void NoteContradiction(const ContainerKey& key, const LinuxResources& requested,
                         const LinuxResources& ours);

  const NodeParts& parts_;
  const Room room_;
};

}  // namespace qrm::manager
