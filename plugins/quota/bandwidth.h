// The CPU bandwidth of one cgroup: its quota in each period, and its burst.
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
  std::optional<int64_t> quota;  ///< absent: no quota
  int64_t burst = 0;

  bool operator==(const Bandwidth&) const = default;
};

/// The file with the quota, and the file with the burst.
const char* QuotaFile(bool is_v1);
const char* BurstFile(bool is_v1);

/// The bandwidth of `cgroup`; burst 0 if the kernel has no file for it. Errors: kNotFound without a
/// quota file; kDataLoss for an unknown file format; kUnavailable. Source: Linux
/// Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst, cpu.max.
StatusOr<Bandwidth> ReadBandwidth(const cgroup::CgroupFiles& cgroup, bool is_v1);

/// The bandwidth of a cgroup with `now` after `wanted`: a burst is a part of its quota.
Bandwidth BandwidthFor(const Bandwidth& now, const QuotaClass& wanted);

/// Sets `wanted` on `cgroup`. Errors: as ReadBandwidth, and the kernel's.
Status SetBandwidth(cgroup::CgroupFiles& cgroup, bool is_v1, const QuotaClass& wanted);

/// "a quota of 50000 us and a burst of 0 us"
std::string ToString(const Bandwidth& of);

}  // namespace qrm::quota
