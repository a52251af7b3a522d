// Detects terminated pods whose sandboxes the runtime still has.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/base/io_context.h"
#include "manager/pods/pod_placer.h"
#include "manager/runtime/container.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Forgets a pod some time after its sandboxes have stopped and its containers have ended, or at
/// once if kubelet has deleted it. Kubelet keeps the sandbox of a finished job for as long as the
/// API server lists its pod, which may be days. A pod whose sandbox is only replaced has a new one
/// within that time. An admission that lacks room does not wait for it (PodPlacer).
///
/// Threads: the I/O loop, or before it runs.
class EndedPods {
 public:
  struct Parts {
    boost::asio::io_context& io;
    LiveContainers& live;
    PodPlacer& placer;
  };
  /// All parts outlive this.
  EndedPods(Parts parts, std::chrono::milliseconds delay);
  ~EndedPods();
  EndedPods(const EndedPods&) = delete;
  EndedPods& operator=(const EndedPods&) = delete;

  void OnStopped(const std::string& pod_uid, const std::string& pod_id);
  /// Notes which of the listed sandboxes are ready, and which have stopped.
  void OnListed(const std::vector<RuntimePod>& pods,
                std::chrono::steady_clock::time_point asked_at =
                    std::chrono::steady_clock::time_point::max());
  /// `pods` are all that exist. A known sandbox that is missing from two lists in a row was removed
  /// without an event. The first time it may only be newer than the list: then the result is false.
  bool FindRemoved(const std::vector<RuntimePod>& pods);
  /// The pod does not restart: it is forgotten as soon as it has ended.
  void ReleaseEnded(const std::string& pod_uid);
  /// No pod is forgotten after it.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
