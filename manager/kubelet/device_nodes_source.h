// Adds to a container's demand on which NUMA nodes the devices are that kubelet gave its pod.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

struct DeviceNodesOptions {
  std::string kubelet_socket;  ///< kubelet's pod-resources socket; empty: it is not asked
  std::chrono::milliseconds timeout{1000};
  /// Whether a plugin serves the resource, of which kubelet then has no device. Threads: any.
  std::function<bool(const std::string&)> is_served = [](const std::string&) { return false; };
};

/// Sets the annotation of device_nodes.h for pods of which a container requests an extended
/// resource that no plugin serves, and drops it where somebody else set it. Kubelet hands out
/// devices before it has a pod's containers made, so one question tells all of them; a kubelet that
/// does not answer is told in the log, and the pod placed as one without devices.
///
/// Threads: any.
class DeviceNodesSource final : public DemandSource {
 public:
  /// `io` and `inner` outlive the source.
  DeviceNodesSource(boost::asio::io_context& io, DemandSource& inner, DeviceNodesOptions options);
  ~DeviceNodesSource() override;
  DeviceNodesSource(const DeviceNodesSource&) = delete;
  DeviceNodesSource& operator=(const DeviceNodesSource&) = delete;

  /// Whoever still waits gets no answer. Threads: the I/O loop, or when it has ended.
  void Stop();

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
            Found found) override;
  void Prefetch(const RuntimePod& pod) override;
  /// Keeps the annotation that is on record.
  std::optional<placement::ContainerDemand> FindNow(
      const placement::ContainerDemand& recorded) const override;
  uint64_t revision() const override;
  void LookAgain(const std::string& pod_uid) override;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
