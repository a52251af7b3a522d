// Calls to the container runtime over CRI: lists, events, and updates of cgroup values.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "manager/runtime/container.h"
#include "manager/runtime/runtime_options.h"

namespace runtime::v1 {
class ContainerStatusResponse;
}  // namespace runtime::v1

namespace qrm::manager {

/// A stream of events; it ends with the object.
class EventWatch {
 public:
  virtual ~EventWatch() = default;
};

/// The runtime as the reconciler and the observer use it.
///
/// Every `done` runs once, on the I/O loop, unless the runtime object is destroyed first.
/// Errors: kUnavailable if the socket does not answer, kDeadlineExceeded, kNotFound for an unknown
/// container, else the runtime's own; each message names the call, the container and the socket.
class ContainerRuntime {
 public:
  using VersionDone = std::function<void(StatusOr<RuntimeInfo>)>;
  using PodsDone = std::function<void(StatusOr<std::vector<RuntimePod>>)>;
  using ContainersDone = std::function<void(StatusOr<std::vector<RuntimeContainer>>)>;
  using ContainerDone = std::function<void(StatusOr<RuntimeContainer>)>;
  using UpdateDone = std::function<void(Status)>;

  virtual ~ContainerRuntime() = default;

  virtual void GetVersion(VersionDone done) = 0;
  /// All pods, also those that have ended and wait for their removal. CRI's list has no pid, cgroup
  /// parent and resources.
  virtual void ListPods(PodsDone done) = 0;
  /// All containers, also those that have ended and wait for their removal, without env, resources
  /// and pid.
  virtual void ListContainers(ContainersDone done) = 0;
  /// `listed`, a container of such a list, with its resources, cgroup path, OOM score and pid, as
  /// far as the runtime shows them. Errors: kNotFound when it is gone.
  virtual void GetContainer(const RuntimeContainer& listed, ContainerDone done) = 0;
  /// Until the result is destroyed, calls `on_event` with each of the runtime's events, when a pod
  /// or container may have changed, and `on_end` once if the stream ends. Errors: kUnimplemented
  /// for runtimes without events. Threads: the I/O loop, also to destroy the result.
  virtual std::unique_ptr<EventWatch> WatchEvents(std::function<void()> on_event,
                                                  UpdateDone on_end) = 0;
  /// Sets the values of `update.resources`, and no others. Hugepage limits are never sent, since
  /// containerd appends them to existing ones. An update without values succeeds at once. The
  /// updates of one container are sent one after the other, since runtimes carry out calls in any
  /// order.
  virtual void UpdateResources(const ContainerUpdate& update, UpdateDone done) = 0;
};

/// ContainerRuntime over gRPC on a unix socket; connects when first used and again after a restart
/// of the runtime.
///
/// Threads: any.
class CriClient final : public ContainerRuntime {
 public:
  /// `io` outlives the client.
  CriClient(boost::asio::io_context& io, const CriOptions& options);
  /// Cancels all calls. Called on the I/O loop or after the loop's end, no `done` runs after it.
  ~CriClient() override;
  CriClient(const CriClient&) = delete;
  CriClient& operator=(const CriClient&) = delete;

  void GetVersion(VersionDone done) override;
  void ListPods(PodsDone done) override;
  void ListContainers(ContainersDone done) override;
  void GetContainer(const RuntimeContainer& listed, ContainerDone done) override;
  std::unique_ptr<EventWatch> WatchEvents(std::function<void()> on_event,
                                          UpdateDone on_end) override;
  void UpdateResources(const ContainerUpdate& update, UpdateDone done) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Adds to a listed `container` the values of its verbose status: cgroup values, cgroup path, OOM
/// score and pid. The cgroup values are those that kubelet requested, as far as the runtime shows
/// them. Text that is not JSON, or has another shape, adds nothing. Source: containerd's and
/// CRI-O's ContainerStatusResponse.info["info"], which holds "pid" and the OCI "runtimeSpec".
void AddStatus(const ::runtime::v1::ContainerStatusResponse& response, RuntimeContainer& container);

}  // namespace qrm::manager
