// Detects pods that have ended for good although the runtime still has their sandboxes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "manager/pods/pod_placer.h"
#include "manager/runtime/container.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Forgets a pod's sandboxes a while after they have stopped, when it has no other and no container
/// lives: kubelet keeps the sandbox of a finished job for as long as the job's pod is listed by the
/// API server, which may be days. A pod whose sandbox is only replaced has a new one by then.
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
  /// `ready` are all sandboxes that have not stopped. One that is known and missing here twice in a
  /// row has stopped unheard; once proves nothing, since it may be newer than the list.
  void OnListed(const std::vector<RuntimePod>& ready);
  /// Nothing is forgotten after it.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
