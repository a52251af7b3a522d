// The demand of a container, also after an in-place resize, and the interface of its sources.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "manager/runtime/container.h"
#include "plugins/placement/demand.h"
#include "plugins/placement/pod_keys.h"

namespace qrm::manager {

/// ContainerDemand::source of requests computed from cgroup values.
inline constexpr char kEstimate[] = "estimate";

/// Finds the demand of a container that the runtime is about to create, or has created.
class DemandSource {
 public:
  using Found = std::function<void(StatusOr<placement::ContainerDemand>)>;

  virtual ~DemandSource() = default;

  /// Calls `found` once with the container's demand: within the call if it is known, else by
  /// `deadline` on the I/O loop, where `found` must only post. Answers about containers of one pod
  /// keep the order of the calls. Never waits.
  /// Errors: kInvalidArgument if the runtime gave no pod UID or container name, else the source's.
  /// Threads: any.
  virtual void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
                    Found found) = 0;

  /// Starts to look for the spec of a pod whose containers are about to be created. Threads: any;
  /// never waits.
  virtual void Prefetch(const RuntimePod& /*pod*/) {}

  /// `recorded`, a container's recorded demand, updated from its pod's current spec; absent if no
  /// spec of the pod is known. Never waits. Threads: any.
  virtual std::optional<placement::ContainerDemand> FindNow(
      const placement::ContainerDemand& /*recorded*/) const {
    return std::nullopt;
  }
  /// Changes whenever the answers of FindNow may have changed. Threads: any.
  virtual uint64_t revision() const { return 0; }
  /// Starts to look for the pod's spec again, in sources that can look. Threads: any; never waits.
  virtual void LookAgain(const std::string& /*pod_uid*/) {}
};

/// Estimates the demand from the cgroup values that kubelet gave the container.
///
/// CPUs: exact from 3 m to 256 CPUs; less reads as no request, more as 256 CPUs.
/// Memory: see MemoryFromOomScore; exact for Guaranteed and BestEffort containers, and where
/// kubelet protects requests (memory.min).
/// Extended resources are not visible. If the pod's annotation names a main container, the others
/// are sidecars; without it, all are main containers.
///
/// Threads: any.
/// Source: kubelet's MilliCPUToShares and GetContainerOOMScoreAdjust, Kubernetes 1.36.
class CgroupEstimate final : public DemandSource {
 public:
  /// `memory_bytes` is the node's memory capacity as kubelet computes it; 0 if unknown.
  explicit CgroupEstimate(placement::PodKeys keys = {}, uint64_t memory_bytes = 0);

  /// Errors: kInvalidArgument as Find.
  StatusOr<placement::ContainerDemand> Estimate(const RuntimePod& pod,
                                                const RuntimeContainer& container) const;
  /// The name of the main container in `pod`'s annotation; empty without the annotation.
  std::string MainContainerOf(const checkpoint::PodMeta& pod) const;

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline /*deadline*/,
            Found found) override {
    found(Estimate(pod, container));
  }

 private:
  placement::PodKeys keys_;
  uint64_t memory_bytes_;
};

/// The container's key in the state.
ContainerKey KeyOf(const RuntimePod& pod, const RuntimeContainer& container);

/// The CPU request for `shares`, in thousandths of a CPU; 0 for kubelet's value for no request.
uint64_t MilliCpusFromShares(uint64_t shares);

/// The largest CPU request for a cgroup v2 `cpu.weight`, in thousandths of a CPU. 0 for the lowest
/// weight, which stands for no request and for requests up to 27. Otherwise up to 26 more than the
/// true request, because several requests share a weight. Source: runc's conversion, weight = 1 +
/// (shares - 2) * 9999 / 262142.
uint64_t MilliCpusFromWeight(uint64_t weight);

/// The memory request of a Burstable container on a machine of `memory_bytes`: one point of the
/// score is a thousandth of the memory. The true request is at least the result and less than one
/// point above it: less than two points at the upper end of the score (999, which reads as no
/// request), at most three at the lower end (3). A `limit_bytes` (0: none) within that range is
/// used as the request.
uint64_t MemoryFromOomScore(int64_t score, uint64_t memory_bytes, uint64_t limit_bytes);

/// "Guaranteed", "Burstable" or "BestEffort": by the pod's cgroup if kubelet created it, else by
/// the container's OOM score, else by its limits.
std::string QosClassOf(const RuntimePod& pod, const RuntimeContainer& container);

/// `demand` with the requests that follow from `told`, the values that kubelet sends the runtime at
/// a resize. The spec in `demand` may be older: kubelet's Pods API and `/pods` show a resize only
/// after the runtime has applied it. CPUs follow from the shares; the memory of a Guaranteed pod is
/// its limit. The spec's amounts stay if `told` has no value for them, if kubelet would write the
/// same values for them, or if `told` has no period and so is not kubelet's.
/// Source: kubelet 1.36, where only updates of the status notify the Pods API's watches.
placement::ContainerDemand ResizedDemand(placement::ContainerDemand demand,
                                         const LinuxResources& told);

}  // namespace qrm::manager
