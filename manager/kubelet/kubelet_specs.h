// Chooses the sources of pods' requests by the configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "manager/demand/exact_source.h"
#include "manager/demand/new_pod.h"
#include "manager/demand/spec_source.h"
#include "manager/kubelet/claim_devices.h"
#include "manager/kubelet/device_nodes_source.h"
#include "manager/kubelet/kubelet_options.h"
#include "manager/kubelet/kubelet_pods.h"
#include "manager/kubelet/pods_api_client.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Kubelet's Pods API, then its list over HTTPS, then announced pods, then the estimate; and the
/// devices that kubelet allocated to the pod.
class KubeletSpecs {
 public:
  struct Parts {
    boost::asio::io_context& io;
    const Machine& machine;
    std::string pin_file;  ///< for the fingerprint of kubelet's certificate
    /// Kubelet no longer has the pod of this UID. Threads: the I/O loop.
    std::function<void(const std::string&)> on_pod_gone = [](const std::string&) {};
    DeviceNodesOptions devices = {};
    ClaimDevicesOptions claims = {};
  };
  /// `parts` outlive the sources.
  KubeletSpecs(const Parts& parts, const KubeletOptions& options,
               const placement::PodKeys& pod_keys);

  void Start();
  /// Threads: the I/O loop, or when it has ended.
  void Stop();

  DemandSource& source() { return with_devices_; }
  /// Takes the serialized k8s.io.api.core.v1.Pod `pod`, which is about to be created and which
  /// kubelet does not know; returns its "namespace/name". Errors: kInvalidArgument if it has no
  /// name or UID, or is not a pod. Threads: any.
  StatusOr<std::string> Announce(const std::string& pod);
  /// The source of a new pod's requests now. Threads: any.
  SpecsFrom specs_from() const;
  /// The API that reports specs now, for people; empty: none. Threads: any.
  std::string reporting() const;
  /// Whether the configuration names any API. Threads: any.
  bool asks_kubelet() const { return pods_api_ != nullptr || kubelet_pods_ != nullptr; }
  /// Why requests are estimated although kubelet should report them, or did before; else the
  /// problem of ClaimDevices: one sentence; empty: none, or no API is used. Threads: any.
  std::string problem() const;

 private:
  const std::unique_ptr<PodsApiClient> pods_api_;    // null: not used
  const std::unique_ptr<KubeletPods> kubelet_pods_;  // null: not used
  AnnouncedPods announced_;
  ExactSource specs_;
  ClaimDevices claims_;
  DeviceNodesSource with_devices_;
};

}  // namespace qrm::manager
