// Estimates requests by inverting kubelet's cgroup formulas.
#include "manager/demand/demand_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "api/base/errorf.h"
#include "plugins/placement/requests.h"
#include "plugins/rules/device_nodes.h"

namespace qrm::manager {
namespace {

constexpr uint64_t kMinShares = 2;  // what kubelet writes for "no request"
constexpr uint64_t kSharesPerCpu = 1024;
constexpr int64_t kGuaranteedOomScore = -997;
constexpr int64_t kGuaranteedOomScoreOld = -998;
constexpr int64_t kBestEffortOomScore = 1000;

constexpr char kGuaranteed[] = "Guaranteed";
constexpr char kBurstable[] = "Burstable";
constexpr char kBestEffort[] = "BestEffort";

std::string ValueOf(const StringMap& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string() : found->second;
}

std::string FirstOf(std::string first, std::string second) {
  return first.empty() ? std::move(second) : std::move(first);
}

/// The number in a cgroup v2 file; absent if it is missing or not a number, such as "max".
std::optional<uint64_t> UnifiedNumber(const LinuxResources& resources, const std::string& file) {
  const std::string text = ValueOf(resources.unified, file);
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

double CpusOf(const LinuxResources& resources) {
  const uint64_t milli =
      resources.cpu_shares.has_value()
          ? MilliCpusFromShares(*resources.cpu_shares)
          : MilliCpusFromWeight(UnifiedNumber(resources, "cpu.weight").value_or(0));
  return static_cast<double>(milli) / 1000;
}

uint64_t LimitOf(const LinuxResources& resources) {
  return static_cast<uint64_t>(std::max<int64_t>(resources.memory_limit_bytes.value_or(0), 0));
}

bool LimitsEqualRequests(const LinuxResources& resources) {
  const uint64_t period = resources.cpu_period_us.value_or(0);
  if (period == 0 || !resources.cpu_quota_us.has_value() ||
      resources.memory_limit_bytes.value_or(0) <= 0) {
    return false;
  }
  const double limit = static_cast<double>(*resources.cpu_quota_us) / static_cast<double>(period);
  return std::abs(limit - CpusOf(resources)) < 0.0005;
}

uint64_t EstimateMemory(const RuntimeContainer& container, const std::string& qos_class,
                        uint64_t memory_bytes) {
  const uint64_t limit = LimitOf(container.resources);
  if (const uint64_t bytes = UnifiedNumber(container.resources, "memory.min").value_or(0);
      bytes > 0) {
    return bytes;
  }
  // Lower scores are kubelet's for critical pods, or set by others, and contain no request.
  constexpr int64_t kLeastOfBurstable = 3;
  const int64_t score = container.oom_score_adj.value_or(0);
  return qos_class == kBurstable && memory_bytes > 0 && score >= kLeastOfBurstable
             ? MemoryFromOomScore(score, memory_bytes, limit)
             : limit;
}

std::map<std::string, double> EstimateRequests(const RuntimeContainer& container,
                                               const std::string& qos_class,
                                               uint64_t memory_bytes) {
  std::map<std::string, double> requests;
  if (const double cpus = CpusOf(container.resources); cpus > 0) {
    requests["cpu"] = cpus;
  }
  if (const uint64_t bytes = EstimateMemory(container, qos_class, memory_bytes); bytes > 0) {
    requests["memory"] = static_cast<double>(bytes);
  }
  return requests;
}

/// Without a quota or a period, nothing changes.
void SetCpuLimit(const LinuxResources& told, std::map<std::string, double>& limits) {
  const int64_t quota_us = told.cpu_quota_us.value_or(0);
  const uint64_t period_us = told.cpu_period_us.value_or(0);
  if (quota_us == 0 || period_us == 0) {
    return;
  }
  limits.erase("cpu");
  if (quota_us > 0) {
    limits["cpu"] = static_cast<double>(quota_us) / static_cast<double>(period_us);
  }
}

std::string ContainerNameOf(const RuntimeContainer& container) {
  // CRI-O omits the name while it creates a container; kubelet's label has it.
  return FirstOf(container.name, ValueOf(container.labels, "io.kubernetes.container.name"));
}

}  // namespace

ContainerKey KeyOf(const RuntimePod& pod, const RuntimeContainer& container) {
  return {pod.uid,
          container.name.empty() ? SharedText(ContainerNameOf(container)) : container.name};
}

uint64_t MilliCpusFromShares(uint64_t shares) {
  if (shares <= kMinShares) {
    return 0;
  }
  // Kubelet rounds milli * 1024 / 1000 down, so rounding up restores every amount of 3 or more.
  return (shares * 1000 + kSharesPerCpu - 1) / kSharesPerCpu;
}

uint64_t MilliCpusFromWeight(uint64_t weight) {
  if (weight <= 1) {
    return 0;
  }
  // The largest number of shares that runc converts to this weight.
  constexpr uint64_t kWeights = 9999;
  constexpr uint64_t kShares = 262142;
  const uint64_t shares = kMinShares + (std::min(weight, kWeights + 1) * kShares - 1) / kWeights;
  return MilliCpusFromShares(std::min(shares, kMinShares + kShares));
}

uint64_t MemoryFromOomScore(int64_t score, uint64_t memory_bytes, uint64_t limit_bytes) {
  constexpr int64_t kMost = 999;
  constexpr int64_t kLeast = 3;
  const int64_t bounded = std::clamp(score, kLeast, kMost);
  const auto points = static_cast<uint64_t>(kBestEffortOomScore - bounded);
  const uint64_t point = memory_bytes / 1000;
  const uint64_t bytes =
      bounded == kMost ? 0
                       : memory_bytes / 1000 * points + (memory_bytes % 1000 * points + 999) / 1000;
  const uint64_t range = (bounded == kMost ? 2 : bounded == kLeast ? 3 : 1) * (point + 1);
  return limit_bytes > 0 && limit_bytes < bytes + range ? limit_bytes : bytes;
}

std::string QosClassOf(const RuntimePod& pod, const RuntimeContainer& container) {
  if (pod.cgroup_parent.find("kubepods") != std::string::npos) {
    if (pod.cgroup_parent.find("besteffort") != std::string::npos) {
      return kBestEffort;
    }
    return pod.cgroup_parent.find("burstable") != std::string::npos ? kBurstable : kGuaranteed;
  }
  const int64_t score = container.oom_score_adj.value_or(0);
  if (score == kGuaranteedOomScore || score == kGuaranteedOomScoreOld) {
    return kGuaranteed;
  }
  if (score == kBestEffortOomScore) {
    return kBestEffort;
  }
  if (LimitsEqualRequests(container.resources)) {
    return kGuaranteed;
  }
  return CpusOf(container.resources) > 0 || LimitOf(container.resources) > 0 ? kBurstable
                                                                             : kBestEffort;
}

CgroupEstimate::CgroupEstimate(placement::PodKeys keys, uint64_t memory_bytes)
    : keys_(std::move(keys)), memory_bytes_(memory_bytes) {}

std::string CgroupEstimate::MainContainerOf(const checkpoint::PodMeta& pod) const {
  return placement::MainContainerOf(keys_, pod);
}

StatusOr<placement::ContainerDemand> CgroupEstimate::Estimate(
    const RuntimePod& pod, const RuntimeContainer& container) const {
  placement::ContainerDemand demand;
  demand.runtime_id = container.id;
  demand.container = ContainerNameOf(container);
  if (pod.uid.empty() || demand.container.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot admit container {} of sandbox {}: the runtime gave no {}; create it "
                  "through kubelet, or set pod UID and container name in the CRI metadata",
                  container.id, pod.id, pod.uid.empty() ? "pod UID" : "container name");
  }
  demand.pod = {.uid = pod.uid,
                .pod_namespace = pod.pod_namespace,
                .name = pod.name,
                .qos_class = QosClassOf(pod, container),
                .labels = pod.labels,
                .annotations = pod.annotations};
  demand.pod.annotations.Edit().erase(
      rules::kPodPriorityAnnotation);  // set by qrmd from the spec, never by the pod
  demand.role_key = placement::ReadRole(keys_, demand.pod);
  const std::string main = MainContainerOf(demand.pod);
  demand.type =
      main.empty() || main == demand.container ? ContainerType::kMain : ContainerType::kSidecar;
  demand.requests = EstimateRequests(container, demand.pod.qos_class, memory_bytes_);
  SetCpuLimit(container.resources, demand.limits.Edit());
  demand.source = kEstimate;
  demand.runtime_class = pod.runtime_handler;
  demand.cpus = CpuSet::Parse(container.resources.cpuset_cpus).value_or(CpuSet());
  demand.mems = NumaMask::Parse(container.resources.cpuset_mems).value_or(NumaMask());
  demand.made_with = {.env = container.env,
                      .annotations = container.annotations,
                      .mount_paths = container.mount_paths,
                      .device_paths = container.device_paths};
  return demand;
}

namespace {

// Smaller requests read as none, and all larger ones read alike.
constexpr uint64_t kLeastMilliCpus = 3;
constexpr uint64_t kMostShares = 262144;

bool Agree(uint64_t milli_cpus, uint64_t shares) {
  const uint64_t told = MilliCpusFromShares(shares);
  return milli_cpus == told || (told == 0 && milli_cpus < kLeastMilliCpus) ||
         (shares >= kMostShares && milli_cpus >= told);
}

void TakeCpus(uint64_t shares, std::map<std::string, double>& requests) {
  const auto known = requests.find("cpu");
  const double cpus = known == requests.end() ? 0 : known->second;
  if (Agree(static_cast<uint64_t>(std::llround(cpus * 1000)), shares)) {
    return;
  }
  requests.erase("cpu");  // amounts are above zero
  if (const uint64_t told = MilliCpusFromShares(shares); told > 0) {
    requests["cpu"] = static_cast<double>(told) / 1000;
  }
}

/// Whether kubelet writes `quota_us` for a limit of `cpus`: it rounds down to microseconds and
/// writes at least 1 ms. Source: kubelet's MilliCPUToQuota, Kubernetes 1.36.
bool IsQuotaOf(double cpus, int64_t quota_us, uint64_t period_us) {
  constexpr int64_t kLeastQuotaUs = 1000;
  const int64_t quota = std::llround(cpus * 1000) * static_cast<int64_t>(period_us) / 1000;
  return quota_us == std::max(quota, kLeastQuotaUs);
}

void TakeLimit(const LinuxResources& told, std::map<std::string, double>& limits) {
  const auto known = limits.find("cpu");
  const bool agrees =
      known != limits.end() &&
      IsQuotaOf(known->second, told.cpu_quota_us.value_or(0), told.cpu_period_us.value_or(0));
  if (!agrees) {
    SetCpuLimit(told, limits);
  }
}

}  // namespace

placement::ContainerDemand ResizedDemand(placement::ContainerDemand demand,
                                         const LinuxResources& told) {
  if (told.cpu_period_us.value_or(0) == 0 && demand.source != kEstimate) {
    return demand;
  }
  if (told.cpu_shares.has_value()) {
    TakeCpus(*told.cpu_shares, demand.requests.Edit());
  }
  TakeLimit(told, demand.limits.Edit());
  const auto limit = static_cast<double>(told.memory_limit_bytes.value_or(0));
  if (demand.pod.qos_class == "Guaranteed" && limit > 0) {
    demand.requests.Edit()["memory"] = limit;
  }
  return demand;
}

}  // namespace qrm::manager
