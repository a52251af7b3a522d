// Adds the NUMA nodes of a pod's devices, which kubelet reports, to a container's demand.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

struct DeviceNodesOptions {
  std::string kubelet_socket;  ///< kubelet's pod-resources socket; empty: not queried
  std::chrono::milliseconds timeout{1000};
  /// Whether a plugin serves the resource; kubelet then has no devices of it. Threads: any.
  std::function<bool(const std::string&)> is_served = [](const std::string&) { return false; };
};

/// Sets the annotation of device_nodes.h for pods with a container that requests an extended
/// resource that no plugin serves, and removes an annotation that another program set. Kubelet
/// allocates devices before it creates a pod's containers, so one call covers all of them. If
/// kubelet does not answer, this is logged, and the pod is placed like one without devices.
///
/// Threads: any.
class DeviceNodesSource final : public DemandSource {
 public:
  /// `io` and `inner` outlive the source.
  DeviceNodesSource(boost::asio::io_context& io, DemandSource& inner, DeviceNodesOptions options);
  ~DeviceNodesSource() override;
  DeviceNodesSource(const DeviceNodesSource&) = delete;
  DeviceNodesSource& operator=(const DeviceNodesSource&) = delete;

  /// Pending questions get no answer. Threads: the I/O loop, or when it has ended.
  void Stop();

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
            Found found) override;
  void Prefetch(const RuntimePod& pod) override;
  /// Keeps the recorded annotation.
  std::optional<ContainerDemand> FindNow(const ContainerDemand& recorded) const override;
  uint64_t revision() const override;
  void LookAgain(const std::string& pod_uid) override;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
