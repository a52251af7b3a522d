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
  /// Mounted with cdp or cdpl2: code and data have masks of their own.
  bool code_and_data = false;
};

/// Memory bandwidth that can be divided.
struct BandwidthInfo {
  uint64_t least_percent = 0;
  uint64_t granularity = 1;  ///< the kernel rounds percents up to it
  std::vector<int> ids;
  bool in_mbps = false;  ///< mounted with mba_MBps
};

struct RdtInfo {
  std::optional<CacheInfo> l2;
  std::optional<CacheInfo> l3;
  std::optional<BandwidthInfo> mb;
  std::size_t groups = 0;  ///< how many control groups there can be, the root group included
  std::vector<std::string> events;  ///< what is counted for each L3: "llc_occupancy", ...
};

}  // namespace qrm::rdt
