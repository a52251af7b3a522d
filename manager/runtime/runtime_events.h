// The events and questions that the daemon receives from a container runtime.
#pragma once

#include <functional>
#include <vector>

#include "api/base/status.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

/// Receives the events of one runtime, in the runtime's order.
///
/// A reply may be called at any time and from any thread, once; the first call counts. A reply
/// after the runtime's own deadline is dropped: a creation has then been rejected with
/// kDeadlineExceeded (the caller tries again), and an update has been applied unchanged.
///
/// Threads: every function runs on the I/O loop and must only note or post.
class RuntimeEvents {
 public:
  using AdjustmentReply = std::function<void(StatusOr<ContainerAdjustment>)>;
  using StartReply = std::function<void(const Status&)>;
  using UpdatesReply = std::function<void(StatusOr<std::vector<ContainerUpdate>>)>;

  virtual ~RuntimeEvents() = default;

  /// The runtime has accepted the plugin; OnSynchronize follows.
  virtual void OnConnected(const RuntimeInfo& runtime) = 0;
  /// The connection has ended; containers are created without qrmd until the next OnConnected.
  virtual void OnDisconnected(const Status& cause) = 0;

  /// Everything that exists, after every OnConnected; it may contain stale objects. Containers that
  /// are created meanwhile may be neither in it nor in a later event: list them over CRI as well.
  virtual void OnSynchronize(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers,
                             UpdatesReply reply) = 0;

  /// A pod is starting, still without containers. It cannot be rejected here.
  virtual void OnPodStarted(const RuntimePod& pod) = 0;
  /// All containers of the pod have ended; it may still be listed.
  virtual void OnPodStopped(const RuntimePod& pod) = 0;
  virtual void OnPodRemoved(const RuntimePod& pod) = 0;

  /// A container is being created: the reply's adjustment is in place before its first
  /// instruction; an error fails the creation with that message.
  virtual void OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                                 AdjustmentReply reply) = 0;
  /// Another program (such as kubelet), or qrmd's reconcile, updates a container with `requested`.
  /// The reply's updates are added; one for the container itself wins over `requested`.
  virtual void OnUpdateContainer(RuntimePod pod, RuntimeContainer container,
                                 LinuxResources requested, UpdatesReply reply) = 0;

  /// The container is about to start, and the runtime waits: an error fails the start with that
  /// message.
  virtual void OnStartContainer(const RuntimePod& pod, const RuntimeContainer& container,
                                StartReply reply) = 0;
  /// The container's first process runs.
  virtual void OnContainerStarted(const RuntimePod& pod, const RuntimeContainer& container) = 0;
  /// The container has ended, or its creation was undone.
  virtual void OnContainerStopped(const RuntimePod& pod, const RuntimeContainer& container) = 0;
  virtual void OnContainerRemoved(const RuntimePod& pod, const RuntimeContainer& container) = 0;
};

}  // namespace qrm::manager
