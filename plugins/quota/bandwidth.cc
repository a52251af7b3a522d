// Reads and writes the files of cgroup v1 and v2 for CPU bandwidth.
#include "plugins/quota/bandwidth.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/number.h"

namespace qrm::quota {
namespace {

/// The first word; in v2's file the period follows.
std::string_view FirstWord(std::string_view text) {
  return text.substr(0, text.find_first_of(" \n"));
}

StatusOr<int64_t> NumberIn(const std::string& file, std::string_view text) {
  const std::optional<int64_t> number = ParseNumber<int64_t>(FirstWord(text));
  if (!number.has_value()) {
    return Errorf(
        StatusCode::kDataLoss,
        "cannot read {}: '{}' is not a number of microseconds; is it a file of the cpu controller?",
        file, FirstWord(text));
  }
  return *number;
}

}  // namespace

const char* QuotaFile(bool is_v1) {
  return is_v1 ? "cpu.cfs_quota_us" : "cpu.max";
}

const char* BurstFile(bool is_v1) {
  return is_v1 ? "cpu.cfs_burst_us" : "cpu.max.burst";
}

StatusOr<Bandwidth> ReadBandwidth(const cgroup::CgroupFiles& cgroup, bool is_v1) {
  Bandwidth bandwidth;
  QRM_ASSIGN_OR_RETURN(const std::string quota, cgroup.Read(QuotaFile(is_v1)));
  if (FirstWord(quota) != "max") {
    QRM_ASSIGN_OR_RETURN(const int64_t microseconds, NumberIn(QuotaFile(is_v1), quota));
    if (microseconds >= 0) {  // in v1, -1 means no quota
      bandwidth.quota = microseconds;
    }
  }
  const StatusOr<std::string> burst = cgroup.Read(BurstFile(is_v1));
  if (burst.ok()) {
    QRM_ASSIGN_OR_RETURN(bandwidth.burst, NumberIn(BurstFile(is_v1), *burst));
  } else if (burst.status().code() != StatusCode::kNotFound) {
    return burst.status();
  }
  return bandwidth;
}

Bandwidth BandwidthFor(const Bandwidth& now, const QuotaClass& wanted) {
  constexpr int64_t kAll = 100;
  if (wanted.is_lifted || !now.quota.has_value()) {
    return {.quota = wanted.is_lifted ? std::nullopt : now.quota};
  }
  return {.quota = now.quota, .burst = *now.quota * wanted.burst_percent / kAll};
}

Status SetBandwidth(cgroup::CgroupFiles& cgroup, bool is_v1, const QuotaClass& wanted) {
  QRM_ASSIGN_OR_RETURN(const Bandwidth now, ReadBandwidth(cgroup, is_v1));
  const Bandwidth then = BandwidthFor(now, wanted);
  if (then.burst != now.burst) {
    QRM_RETURN_IF_ERROR(cgroup.Write(BurstFile(is_v1), std::to_string(then.burst)));
  }
  return then.quota == now.quota ? OkStatus()
                                 : cgroup.Write(QuotaFile(is_v1), is_v1 ? "-1" : "max");
}

std::string ToString(const Bandwidth& of) {
  return of.quota.has_value()
             ? fmt::format("a quota of {} us and a burst of {} us", *of.quota, of.burst)
             : "no quota";
}

}  // namespace qrm::quota
