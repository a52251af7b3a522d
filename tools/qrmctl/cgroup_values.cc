// Computes in kubelet's integers.
#include "tools/qrmctl/cgroup_values.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "api/proto/runtime/v1/api.pb.h"

namespace qrm::manager::cli {
namespace {

constexpr int64_t kLeastShares = 2;
constexpr int64_t kMostShares = 262'144;
constexpr int64_t kSharesOfCpu = 1024;
constexpr int64_t kLeastQuotaUs = 1000;
constexpr int64_t kMilli = 1000;
constexpr int64_t kGuaranteedScore = -997;
constexpr int64_t kBestEffortScore = 1000;

int64_t OomScore(const ContainerAmounts& amounts, std::string_view qos_class,
                 int64_t machine_bytes) {
  if (qos_class == "Guaranteed") {
    return kGuaranteedScore;
  }
  if (qos_class == "BestEffort") {
    return kBestEffortScore;
  }
  const int64_t score = kBestEffortScore - kBestEffortScore * amounts.memory_bytes / machine_bytes;
  return std::clamp(score, kBestEffortScore + kGuaranteedScore, kBestEffortScore - 1);
}

}  // namespace

CgroupValues KubeletValues(const ContainerAmounts& amounts, std::string_view qos_class,
                           int64_t machine_bytes) {
  const int64_t shares = amounts.milli_cpus * kSharesOfCpu / kMilli;
  CgroupValues values{.cpu_shares = std::clamp(shares, kLeastShares, kMostShares),
                      .memory_limit_bytes = amounts.memory_limit_bytes,
                      .oom_score_adj = OomScore(amounts, qos_class, machine_bytes)};
  if (amounts.milli_cpu_limit > 0) {
    values.cpu_quota_us = std::max(kLeastQuotaUs, amounts.milli_cpu_limit * kCpuPeriodUs / kMilli);
  }
  return values;
}

::runtime::v1::LinuxContainerResources ToCri(const CgroupValues& values) {
  ::runtime::v1::LinuxContainerResources resources;
  resources.set_cpu_shares(values.cpu_shares);
  resources.set_cpu_quota(values.cpu_quota_us);
  resources.set_cpu_period(kCpuPeriodUs);
  resources.set_memory_limit_in_bytes(values.memory_limit_bytes);
  resources.set_oom_score_adj(values.oom_score_adj);
  return resources;
}

int64_t MachineBytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  meminfo >> key >> kib;
  return std::max<int64_t>(kib, 1) * 1024;
}

}  // namespace qrm::manager::cli
