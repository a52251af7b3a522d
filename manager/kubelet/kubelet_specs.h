// Chooses by the configuration where qrmd learns what pods request.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "manager/demand/announced_pods.h"
#include "manager/demand/exact_source.h"
#include "manager/demand/new_pod.h"
#include "manager/kubelet/device_nodes_source.h"
#include "manager/kubelet/kubelet_options.h"
#include "manager/kubelet/kubelet_pods.h"
#include "manager/kubelet/pods_api_client.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Kubelet's Pods API, then its list over HTTPS, then what was announced, then the estimate; and
/// the devices that kubelet gave the pod.
class KubeletSpecs {
 public:
  struct Parts {
    boost::asio::io_context& io;
    const Machine& machine;
    std::string pin_file;  ///< where the fingerprint of kubelet's certificate is kept
    /// Kubelet has this pod, by its UID, no more. Threads: the I/O loop.
    std::function<void(const std::string&)> on_pod_gone = [](const std::string&) {};
    DeviceNodesOptions devices = {};
  };
  /// `parts` outlive the sources.
  KubeletSpecs(const Parts& parts, const KubeletOptions& options,
               const placement::PodKeys& pod_keys);

  void Start();
  /// Threads: the I/O loop, or when it has ended.
  void Stop();

  DemandSource& source() { return with_devices_; }
  /// Takes the serialized k8s.io.api.core.v1.Pod `pod` for one that is about to be made and that
  /// kubelet does not know; gives its "namespace/name". Errors: kInvalidArgument for one without
  /// name or UID, or that is no pod. Threads: any.
  StatusOr<std::string> Announce(const std::string& pod);
  /// Who tells now what a pod that comes requests. Threads: any.
  SpecsFrom specs_from() const;

 private:
  const std::unique_ptr<PodsApiClient> pods_api_;    // null when it is not to be asked
  const std::unique_ptr<KubeletPods> kubelet_pods_;  // null when it is not to be asked
  AnnouncedPods announced_;
  ExactSource specs_;
  DeviceNodesSource with_devices_;
};

}  // namespace qrm::manager
