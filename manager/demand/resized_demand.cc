// Takes the values from which a request follows exactly.
#include "manager/demand/resized_demand.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace qrm::manager {
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

ContainerDemand ResizedDemand(ContainerDemand demand, const LinuxResources& told) {
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
