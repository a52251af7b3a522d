// Adds the NUMA nodes of a pod's devices, which kubelet reports, to a container's demand.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "manager/demand/demand_source.h"
#include "manager/kubelet/claim_devices.h"
#include "topology/machine.h"

namespace qrm::manager {

struct DeviceNodesOptions {
  std::string kubelet_socket;  ///< kubelet's pod-resources socket; empty: not queried
  std::chrono::milliseconds timeout{1000};
  /// Whether a plugin serves the resource; kubelet then has no devices of it. Threads: any.
  std::function<bool(const std::string&)> is_served = [](const std::string&) { return false; };
  /// How long a container's creation waits for the NUMA nodes of claims' devices. Kubelet's answer
  /// about a container that has no other devices counts, too.
  std::chrono::milliseconds claims_wait{200};
};

/// Sets `ContainerDemand::devices` and the annotation of device_nodes.h for pods with a container
/// that requests an extended resource that no plugin serves, or that uses devices of resource
/// claims (DRA); and removes an annotation that another program set. Kubelet allocates devices
/// and prepares claims before it creates a pod's containers, so one call covers all of them. If
/// kubelet does not answer, this is logged, and the pod is placed like one without devices, except
/// for the devices that the runtime names. What comes after `claims_wait` is not used.
///
/// Source of the hints from devices: Kubernetes 1.36, the device manager's hints for devices that
/// it has allocated. Its devices that are not allocated do not count, so what it could have
/// given on fewer nodes is not known: the fewest nodes of the allocated devices are preferred.
///
/// Threads: any.
class DeviceNodesSource final : public DemandSource {
 public:
  /// The references outlive the source.
  DeviceNodesSource(boost::asio::io_context& io, DemandSource& inner, const Machine& machine,
                    ClaimDevices& claims, DeviceNodesOptions options);
  ~DeviceNodesSource() override;
  DeviceNodesSource(const DeviceNodesSource&) = delete;
  DeviceNodesSource& operator=(const DeviceNodesSource&) = delete;

  /// Pending questions get no answer. Threads: the I/O loop, or when it has ended.
  void Stop();

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
            Found found) override;
  void Prefetch(const RuntimePod& pod) override;
  /// Keeps the recorded annotation.
  std::optional<placement::ContainerDemand> FindNow(
      const placement::ContainerDemand& recorded) const override;
  uint64_t revision() const override;
  void LookAgain(const std::string& pod_uid) override;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
