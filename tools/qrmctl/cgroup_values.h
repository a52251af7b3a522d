// The cgroup values that kubelet computes for a container.
#pragma once

#include <cstdint>
#include <string_view>

namespace runtime::v1 {
class LinuxContainerResources;
}  // namespace runtime::v1

namespace qrm::manager::cli {

inline constexpr int64_t kCpuPeriodUs = 100'000;

/// What a container asks for; 0 for what it does not.
struct ContainerAmounts {
  int64_t milli_cpus = 0;
  int64_t milli_cpu_limit = 0;
  int64_t memory_bytes = 0;
  int64_t memory_limit_bytes = 0;
};

struct CgroupValues {
  int64_t cpu_shares = 0;
  int64_t cpu_quota_us = 0;  ///< of each kCpuPeriodUs; 0: none
  int64_t memory_limit_bytes = 0;
  int64_t oom_score_adj = 0;
};

/// For a container in a pod of that QoS class, "Guaranteed", "Burstable" or "BestEffort", on a
/// machine of `machine_bytes` of memory.
/// Source: kubelet's MilliCPUToShares, MilliCPUToQuota and GetContainerOOMScoreAdjust.
CgroupValues KubeletValues(const ContainerAmounts& amounts, std::string_view qos_class,
                           int64_t machine_bytes);

/// The same as CRI's containers are made with.
::runtime::v1::LinuxContainerResources ToCri(const CgroupValues& values);

/// This machine's memory, as kubelet counts it.
int64_t MachineBytes();

}  // namespace qrm::manager::cli
