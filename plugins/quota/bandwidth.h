// The CPU bandwidth of one cgroup: its quota in each period, and what of it may be saved up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/base/status.h"
#include "plugins/cgroup/cgroup_table.h"
#include "plugins/quota/config.h"

namespace qrm::quota {

/// Microseconds.
struct Bandwidth {
  std::optional<int64_t> quota;  ///< absent: none
  int64_t burst = 0;

  bool operator==(const Bandwidth&) const = default;
};

/// The file with the quota, and that with the burst.
const char* QuotaFile(bool is_v1);
const char* BurstFile(bool is_v1);

/// What `cgroup` has; without a file of its kernel, no burst. Errors: kNotFound without a quota's
/// file; kDataLoss for a file of no known form; kUnavailable.
/// Source: Linux Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst, cpu.max.
StatusOr<Bandwidth> ReadBandwidth(const cgroup::CgroupFiles& cgroup, bool is_v1);

/// What a cgroup with `now` is to have by `wanted`: a burst is a part of its quota.
Bandwidth BandwidthFor(const Bandwidth& now, const QuotaClass& wanted);

/// Has `cgroup` have what `wanted` says. Errors: as ReadBandwidth, and the kernel's.
Status SetBandwidth(cgroup::CgroupFiles& cgroup, bool is_v1, const QuotaClass& wanted);

/// "a quota of 50000 us and a burst of 0 us"
std::string ToString(const Bandwidth& of);

}  // namespace qrm::quota
