// The operator's configuration of blockio classes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::blockio {

/// The values of one device, or the weight of all other devices. Absent: not set.
struct Parameters {
  std::optional<uint64_t> read_bps;
  std::optional<uint64_t> write_bps;
  std::optional<uint64_t> read_iops;
  std::optional<uint64_t> write_iops;
  std::optional<uint64_t> weight;  ///< 10 to 1000

  /// Takes over all values that `later` sets.
  void Override(const Parameters& later);
  bool operator==(const Parameters&) const = default;
};

struct Entry {
  std::vector<std::string>
      devices;  ///< globs of device nodes; empty: all other devices, weight only
  Parameters parameters;

  bool operator==(const Entry&) const = default;
};

/// A class; later entries override earlier ones.
using ClassConfig = std::vector<Entry>;

/// Reads `Classes: {NAME: [{Devices: [GLOB...], ThrottleReadBps: 50M, ..., Weight: 100}]}`. Errors:
/// kInvalidArgument with file, line and key for anything else. Source: goresctrl, pkg/blockio,
/// except that a rate of 0, which would lift the limit, is rejected.
StatusOr<std::map<std::string, ClassConfig>> ParseConfig(const config::Section& file);

}  // namespace qrm::blockio
