// Kubelet's own devices and claims, which no plugin of qrmd allocates.
#pragma once

#include <memory>
#include <string>

namespace v1 {
class AllocatableResourcesResponse;
class ListPodResourcesResponse;
class PodResources;
}  // namespace v1

namespace qrm::manager {

/// One answer of kubelet's own pod-resources socket. Threads: immutable, any.
class KubeletView {
 public:
  /// An empty answer.
  KubeletView();
  KubeletView(::v1::ListPodResourcesResponse list, ::v1::AllocatableResourcesResponse allocatable);
  KubeletView(const KubeletView&) = delete;
  KubeletView& operator=(const KubeletView&) = delete;
  ~KubeletView();

  const ::v1::ListPodResourcesResponse& list() const;
  const ::v1::AllocatableResourcesResponse& allocatable() const;

  /// Whether both views have the same about the pod. Cost: finding it and comparing its bytes.
  bool AgreesOn(const std::string& pod_namespace, const std::string& name,
                const KubeletView& other) const;

  /// Null when kubelet does not know the pod.
  const ::v1::PodResources* FindPod(const std::string& pod_namespace,
                                    const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Adds kubelet's devices and dynamic resources to the containers of `pod`, and the containers that
/// only kubelet knows. Keeps CPUs and memory. A device without NUMA nodes loses its topology.
void AddKubeletPod(const ::v1::PodResources& kubelet, ::v1::PodResources& pod);

/// Adds kubelet's devices.
void AddKubeletAllocatable(const ::v1::AllocatableResourcesResponse& kubelet,
                           ::v1::AllocatableResourcesResponse& allocatable);

}  // namespace qrm::manager
