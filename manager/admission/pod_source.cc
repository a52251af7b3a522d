// Kubelet's cgroup formulas, inverted.
#include "manager/admission/pod_source.h"

#include <cmath>
#include <utility>

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

double CpusOf(const LinuxResources& resources) {
  return static_cast<double>(MilliCpusFromShares(resources.cpu_shares.value_or(0))) / 1000;
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

std::map<std::string, double> EstimateRequests(const LinuxResources& resources) {
  std::map<std::string, double> requests;
  if (const double cpus = CpusOf(resources); cpus > 0) {
    requests["cpu"] = cpus;
  }
  if (resources.memory_limit_bytes.value_or(0) > 0) {
    requests["memory"] = static_cast<double>(*resources.memory_limit_bytes);
  }
  return requests;
}

}  // namespace

std::string ContainerNameOf(const RuntimeContainer& container) {
  // CRI-O leaves the name out while it creates a container; kubelet's label has it.
  return FirstOf(container.name, ValueOf(container.labels, "io.kubernetes.container.name"));
}

ContainerKey KeyOf(const RuntimePod& pod, const RuntimeContainer& container) {
  return {pod.uid, ContainerNameOf(container)};
}

uint64_t MilliCpusFromShares(uint64_t shares) {
  if (shares <= kMinShares) {
    return 0;
  }
  // Kubelet rounds milli * 1024 / 1000 down, so rounding up gives back every amount of 3 or more.
  return (shares * 1000 + kSharesPerCpu - 1) / kSharesPerCpu;
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
  return EstimateRequests(container.resources).empty() ? kBestEffort : kBurstable;
}

CgroupEstimate::CgroupEstimate(PodKeys keys) : keys_(std::move(keys)) {}

StatusOr<ContainerDemand> CgroupEstimate::Find(const RuntimePod& pod,
                                               const RuntimeContainer& container,
                                               Deadline /*deadline*/) {
  ContainerDemand demand;
  demand.container = ContainerNameOf(container);
  if (pod.uid.empty() || demand.container.empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot admit container {} of sandbox {}: the runtime gave no {}; create it "
                  "through kubelet or with both in its CRI metadata",
                  container.id, pod.id, pod.uid.empty() ? "pod UID" : "container name");
  }
  demand.pod = {.uid = pod.uid,
                .pod_namespace = pod.pod_namespace,
                .name = pod.name,
                .role = FirstOf(ValueOf(pod.labels, keys_.role_label),
                                ValueOf(pod.annotations, keys_.role_annotation)),
                .type = FirstOf(ValueOf(pod.annotations, keys_.type_annotation),
                                ValueOf(pod.annotations, keys_.type_annotation_fallback)),
                .qos_class = QosClassOf(pod, container),
                .labels = pod.labels,
                .annotations = pod.annotations};
  const std::string main = ValueOf(pod.annotations, keys_.main_container_annotation);
  demand.type =
      main.empty() || main == demand.container ? ContainerType::kMain : ContainerType::kSidecar;
  demand.requests = EstimateRequests(container.resources);
  demand.source = "estimate";
  demand.runtime_class = pod.runtime_handler;
  return demand;
}

}  // namespace qrm::manager
