// Keeps what a runtime tells until there is somebody to hear it.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "manager/runtime/runtime_events.h"

namespace qrm::manager {

/// Passes on what it is told, in the same order; until DeliverTo, it keeps it. What was kept of a
/// connection goes with it: the next one tells everything again.
///
/// Threads: the I/O loop.
class HeldEvents final : public RuntimeEvents {
 public:
  /// Passes on what was kept and, from now on, all that comes. `events` outlives this. Once.
  void DeliverTo(RuntimeEvents& events);
  /// Drops what is kept; replies that are due are never called.
  void Drop() { held_.clear(); }

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
  /// Calls `event` of the one who hears it, now or later.
  template <typename... Parameters, typename... Arguments>
  void Pass(void (RuntimeEvents::*event)(Parameters...), Arguments&&... arguments);

  RuntimeEvents* events_ = nullptr;
  std::vector<std::function<void(RuntimeEvents&)>> held_;
};

}  // namespace qrm::manager
