// The classes of type blockio, as the operator writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::blockio {

/// What is set of one device, or by weight of all others. Absent: not set.
struct Parameters {
  std::optional<uint64_t> read_bps;
  std::optional<uint64_t> write_bps;
  std::optional<uint64_t> read_iops;
  std::optional<uint64_t> write_iops;
  std::optional<uint64_t> weight;  ///< 10 to 1000

  /// Takes from `later` what it sets.
  void Override(const Parameters& later);
  bool operator==(const Parameters&) const = default;
};

struct Entry {
  std::vector<std::string> devices;  ///< globs over device nodes; none: all devices, by weight
  Parameters parameters;

  bool operator==(const Entry&) const = default;
};

/// A class: what later entries set wins over what earlier ones do.
struct ClassConfig {
  std::string name;
  std::vector<Entry> entries;

  bool operator==(const ClassConfig&) const = default;
};

/// Reads `Classes: {NAME: [{Devices: [GLOB...], ThrottleReadBps: 50M, ..., Weight: 100}]}`.
/// Errors: kInvalidArgument with file, line and key for anything else: nothing is skipped.
/// Source: goresctrl, pkg/blockio; but for a rate of 0, which would lift the limit and is refused.
StatusOr<std::vector<ClassConfig>> ParseConfig(const config::Section& file);

}  // namespace qrm::blockio
