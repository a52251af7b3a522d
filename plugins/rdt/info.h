// What resctrl offers on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace qrm::rdt {

/// A cache that can be divided.
struct CacheInfo {
  uint64_t mask = 0;  ///< all its ways
  int least_bits = 1;
  std::vector<int> ids;  ///< ascending; neither contiguous nor starting at 0
  /// Mounted with cdp or cdpl2: code and data have separate masks.
  bool code_and_data = false;
};

/// Memory bandwidth that can be divided.
struct BandwidthInfo {
  uint64_t least_percent = 0;
  uint64_t granularity = 1;  ///< the kernel rounds percentages up to it
  std::vector<int> ids;
  bool in_mbps = false;  ///< mounted with mba_MBps
};

struct RdtInfo {
  std::optional<CacheInfo> l2;
  std::optional<CacheInfo> l3;
  std::optional<BandwidthInfo> mb;
  std::size_t groups = 0;           ///< the maximum number of control groups, with the root group
  std::vector<std::string> events;  ///< counters of each L3: "llc_occupancy", ...
};

}  // namespace qrm::rdt
