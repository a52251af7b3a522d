// Chooses by the configuration where qrmd learns what pods request.
#pragma once

#include <memory>

#include <boost/asio/io_context.hpp>

#include "manager/demand/exact_source.h"
#include "manager/demand/new_pod.h"
#include "manager/kubelet/kubelet_options.h"
#include "manager/kubelet/kubelet_pods.h"
#include "manager/kubelet/pods_api_client.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Kubelet's Pods API, then its list over HTTPS, then the estimate.
class KubeletSpecs {
 public:
  /// `io` outlives the sources.
  KubeletSpecs(boost::asio::io_context& io, const KubeletOptions& options, const PodKeys& pod_keys,
               const Machine& machine);

  void Start();
  /// Threads: the I/O loop, or when it has ended.
  void Stop();

  DemandSource& source() { return source_; }
  /// Who tells now what a pod that comes requests. Threads: any.
  SpecsFrom specs_from() const;

 private:
  const std::unique_ptr<PodsApiClient> pods_api_;    // null when it is not to be asked
  const std::unique_ptr<KubeletPods> kubelet_pods_;  // null when it is not to be asked
  ExactSource source_;
};

}  // namespace qrm::manager
