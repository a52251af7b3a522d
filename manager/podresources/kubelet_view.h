// Kubelet's own devices and claims, which no plugin of qrmd allocates.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/base/status.h"

namespace v1 {
class AllocatableResourcesResponse;
class PodResources;
}  // namespace v1

namespace qrm::manager {

/// One answer of kubelet's own pod-resources socket, kept as kubelet sent it: parsed, it would be
/// several times as large. Threads: immutable, any.
class KubeletView {
 public:
  static constexpr std::size_t kMostPods = 10'000;

  /// An empty answer.
  KubeletView() = default;
  /// The serialized answers to List and GetAllocatableResources. Errors: kInvalidArgument for bytes
  /// that are none, kResourceExhausted for more than kMostPods pods. Cost: parses each pod once.
  static StatusOr<std::shared_ptr<const KubeletView>> Make(std::string list,
                                                           std::string allocatable);
  KubeletView(const KubeletView&) = delete;
  KubeletView& operator=(const KubeletView&) = delete;
  ~KubeletView() = default;

  /// Whether Make got these bytes.
  bool IsOf(const std::string& list, const std::string& allocatable) const {
    return list_ == list && allocatable_ == allocatable;
  }
  /// The size of the answer to List.
  std::size_t list_bytes() const { return list_.size(); }
  /// The answer to GetAllocatableResources, as Make got it.
  const std::string& allocatable() const { return allocatable_; }

  /// Reads what kubelet knows about the pod into `found`. False when it does not know the pod.
  bool FindPod(const std::string& pod_namespace, const std::string& name,
               ::v1::PodResources& found) const;

  /// The pods for which `wanted(namespace, name)` holds, in kubelet's order, one at a time.
  void ForEachPod(
      const std::function<bool(const std::string& pod_namespace, const std::string& name)>& wanted,
      const std::function<void(::v1::PodResources& pod)>& take) const;

  /// Adds kubelet's devices.
  void AddAllocatable(::v1::AllocatableResourcesResponse& allocatable) const;

 private:
  struct Pod {
    std::string pod_namespace;
    std::string name;
    std::string_view bytes;  // of list_
  };
  /// Fills the rest from the bytes.
  Status Read();

  std::string list_;
  std::string allocatable_;
  std::vector<Pod> pods_;
  std::unordered_map<std::string, std::size_t> index_;  // of pods_, by "namespace/name"
};

/// Adds kubelet's devices and dynamic resources to the containers of `pod`, and the containers that
/// only kubelet knows. Keeps CPUs and memory. A device without NUMA nodes loses its topology.
void AddKubeletPod(const ::v1::PodResources& kubelet, ::v1::PodResources& pod);

}  // namespace qrm::manager
