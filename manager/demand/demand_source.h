// The demand of a container, and where an admission learns it.
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

/// The source of requests that were computed from cgroup values.
inline constexpr char kEstimate[] = "estimate";

/// Takes the CPU limit that `told` says; without a quota or a period it says nothing.
void SetCpuLimit(const LinuxResources& told, std::map<std::string, double>& limits);

/// Tells the demand of a container that the runtime is about to create, or has.
class DemandSource {
 public:
  using Found = std::function<void(StatusOr<placement::ContainerDemand>)>;

  virtual ~DemandSource() = default;

  /// Tells `found` once what the container asks for: within the call when that is known, else by
  /// `deadline` on the I/O loop, where it must only post. Answers about containers of one pod come
  /// in the order of the questions. Never waits.
  /// Errors: kInvalidArgument when the runtime left out whose container it is, else the source's
  /// own. Threads: any.
  virtual void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline deadline,
                    Found found) = 0;

  /// Begins to look for the specs of a pod whose containers are about to be created. Threads: any;
  /// never waits.
  virtual void Prefetch(const RuntimePod& /*pod*/) {}

  /// `recorded`, what a container on record asked for, with what its pod's spec says now; absent
  /// when no spec of the pod is known. Never waits. Threads: any.
  virtual std::optional<placement::ContainerDemand> FindNow(
      const placement::ContainerDemand& /*recorded*/) const {
    return std::nullopt;
  }
  /// Changes whenever FindNow may answer otherwise than before. Threads: any.
  virtual uint64_t revision() const { return 0; }
  /// Begins to look for the pod's spec once more, as far as somebody can be asked. Threads: any;
  /// never waits.
  virtual void LookAgain(const std::string& /*pod_uid*/) {}
};

/// Computes the demand from the cgroup values that kubelet gave the container.
///
/// CPUs: exact from 3 m to 256 CPUs; less reads as no request, more as 256 CPUs.
/// Memory: see MemoryFromOomScore; exact for Guaranteed and BestEffort containers, and where the
/// kubelet protects requests (memory.min).
/// Extended resources cannot be seen. A container that the pod does not name as its main one is a
/// sidecar; without that annotation all are main.
///
/// Threads: any.
/// Source: kubelet's MilliCPUToShares and GetContainerOOMScoreAdjust, Kubernetes 1.36.
class CgroupEstimate final : public DemandSource {
 public:
  /// `memory_bytes` is the machine's, as kubelet takes it for the node's capacity; 0 when unknown.
  explicit CgroupEstimate(placement::PodKeys keys = {}, uint64_t memory_bytes = 0);

  /// Errors: kInvalidArgument as Find.
  StatusOr<placement::ContainerDemand> Estimate(const RuntimePod& pod,
                                                const RuntimeContainer& container) const;
  /// The name of the container that `pod` calls its main one; empty when it names none.
  std::string MainContainerOf(const checkpoint::PodMeta& pod) const;

  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline /*deadline*/,
            Found found) override {
    found(Estimate(pod, container));
  }

 private:
  placement::PodKeys keys_;
  uint64_t memory_bytes_;
};

/// The container's name in its pod, whichever way the runtime gives it; empty when it does not.
std::string ContainerNameOf(const RuntimeContainer& container);

/// What the state calls the container.
ContainerKey KeyOf(const RuntimePod& pod, const RuntimeContainer& container);

/// The CPU request behind `shares`, in thousandths of a CPU; 0 for what kubelet writes for none.
uint64_t MilliCpusFromShares(uint64_t shares);

/// The largest CPU request behind a cgroup v2 `cpu.weight`, in thousandths of a CPU; 0 for the
/// least weight, which is that of no request and of all up to 27. Else at most 26 more than what
/// was requested: several requests share a weight. Source: runc's conversion, weight = 1 + (shares
/// - 2) * 9999 / 262142.
uint64_t MilliCpusFromWeight(uint64_t weight);

/// The memory request of a Burstable container on a machine of `memory_bytes`: one point of the
/// score is a thousandth of the machine. The true request is at least the result and less than one
/// point above it; less than two where the score is at its upper end (999, which reads as no
/// request), at most three where it is at its lower (3). A `limit_bytes` (0: none) within that
/// range is taken for the request.
uint64_t MemoryFromOomScore(int64_t score, uint64_t memory_bytes, uint64_t limit_bytes);

/// "Guaranteed", "Burstable" or "BestEffort": by the pod's cgroup when kubelet made it, else by the
/// container's OOM score, else by its limits.
std::string QosClassOf(const RuntimePod& pod, const RuntimeContainer& container);

}  // namespace qrm::manager
