// Detects pods that have ended for good although the runtime still has their sandboxes.
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

/// Forgets a pod a while after its sandboxes have stopped and its containers have ended, at once
/// when it does not come back: kubelet keeps the sandbox of a finished job for as long as the job's
/// pod is listed by the API server, which may be days. A pod whose sandbox is only replaced has a
/// new one by then. An admission that lacks room does not wait for it (PodPlacer).
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
  /// Takes over which of the listed sandboxes are ready: one that is not has stopped.
  void OnListed(const std::vector<RuntimePod>& pods,
                std::chrono::steady_clock::time_point asked_at =
                    std::chrono::steady_clock::time_point::max());
  /// `pods` are all that there are. A sandbox that is known and missing here twice in a row was
  /// removed unheard; once proves nothing, since it may be newer than the list: false then.
  bool FindRemoved(const std::vector<RuntimePod>& pods);
  /// The pod does not come back: it is forgotten as soon as it has ended.
  void ReleaseEnded(const std::string& pod_uid);
  /// Nothing is forgotten after it.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
