// What kubelet itself says about the node: devices and claims that no plugin of ours hands out.
#pragma once

#include <string>
#include <unordered_map>

#include "api/proto/podresources/v1/api.pb.h"

namespace qrm::manager {

/// One answer of kubelet's own pod-resources socket. Threads: immutable, any.
class KubeletView {
 public:
  /// An empty answer.
  KubeletView() = default;
  KubeletView(::v1::ListPodResourcesResponse list, ::v1::AllocatableResourcesResponse allocatable);
  KubeletView(const KubeletView&) = delete;
  KubeletView& operator=(const KubeletView&) = delete;
  ~KubeletView() = default;

  const ::v1::ListPodResourcesResponse& list() const { return list_; }
  const ::v1::AllocatableResourcesResponse& allocatable() const { return allocatable_; }

  /// Both views tell the same of the pod. Cost: that of finding it and comparing its bytes.
  bool AgreesOn(const std::string& pod_namespace, const std::string& name,
                const KubeletView& other) const;

  /// Null when kubelet does not know the pod.
  const ::v1::PodResources* FindPod(const std::string& pod_namespace,
                                    const std::string& name) const;

 private:
  ::v1::ListPodResourcesResponse list_;
  ::v1::AllocatableResourcesResponse allocatable_;
  struct Known {
    const ::v1::PodResources* pod;
    std::string bytes;
  };
  const Known* Find(const std::string& pod_namespace, const std::string& name) const;

  std::unordered_map<std::string, Known> pods_;  // by "namespace/name"
};

/// Adds kubelet's devices and dynamic resources to the containers of `pod`, and the containers that
/// only kubelet knows. CPUs and memory stay ours. A device without NUMA nodes loses its topology.
void AddKubeletPod(const ::v1::PodResources& kubelet, ::v1::PodResources& pod);

/// Adds kubelet's devices.
void AddKubeletAllocatable(const ::v1::AllocatableResourcesResponse& kubelet,
                           ::v1::AllocatableResourcesResponse& allocatable);

}  // namespace qrm::manager
