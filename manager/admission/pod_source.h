// Where an admission learns what a container asks for.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/clock.h"
#include "api/resource.h"
#include "api/status.h"
#include "checkpoint/node_state.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

/// What one container asks of the node, and as what.
struct ContainerDemand {
  checkpoint::PodMeta pod;
  std::string container;
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;
  /// By the names the pod uses. Units: as in ContainerRequest::requests; amounts are above zero.
  std::map<std::string, double> requests;
  std::string source;  ///< where `requests` came from
  std::string runtime_class;

  ContainerKey key() const { return {pod.uid, container}; }
};

/// Tells the demand of a container that the runtime is about to create, or has.
class PodSource {
 public:
  virtual ~PodSource() = default;

  /// Errors: kInvalidArgument when the runtime left out whose container it is, else the source's
  /// own. Threads: the state loop; may wait until `deadline`.
  virtual StatusOr<ContainerDemand> Find(const RuntimePod& pod, const RuntimeContainer& container,
                                         Deadline deadline) = 0;
};

/// Where a pod says its role and type. A label or annotation that is missing or empty is skipped.
struct PodKeys {
  std::string role_label = "katalyst.kubewharf.io/pod_role";
  std::string role_annotation = "kubernetes.io/pod-role";  ///< read when the label is missing
  std::string type_annotation = "katalyst.kubewharf.io/pod_type";
  std::string type_annotation_fallback = "kubernetes.io/resource-type";
  std::string main_container_annotation = "kubernetes.io/main-container-name";
};

/// Computes the demand from the cgroup values that kubelet gave the container. CPU requests are
/// exact up to 256 CPUs; a memory request is the limit, and none without one; extended resources
/// cannot be seen. A container that the pod does not name as its main one is a sidecar; without
/// that annotation all are main.
///
/// Threads: any.
/// Source: kubelet's MilliCPUToShares and GetContainerOOMScoreAdjust, Kubernetes 1.36.
class CgroupEstimate final : public PodSource {
 public:
  explicit CgroupEstimate(PodKeys keys = {});

  StatusOr<ContainerDemand> Find(const RuntimePod& pod, const RuntimeContainer& container,
                                 Deadline deadline) override;

 private:
  PodKeys keys_;
};

/// The container's name in its pod, whichever way the runtime gives it; empty when it does not.
std::string ContainerNameOf(const RuntimeContainer& container);

/// What the state calls the container.
ContainerKey KeyOf(const RuntimePod& pod, const RuntimeContainer& container);

/// The CPU request behind `shares`, in thousandths of a CPU; 0 for what kubelet writes for none.
uint64_t MilliCpusFromShares(uint64_t shares);

/// "Guaranteed", "Burstable" or "BestEffort": by the pod's cgroup when kubelet made it, else by the
/// container's OOM score, else by its limits.
std::string QosClassOf(const RuntimePod& pod, const RuntimeContainer& container);

}  // namespace qrm::manager
