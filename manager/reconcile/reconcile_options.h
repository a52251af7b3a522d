// How allocations are brought to running containers: the options, their defaults and their keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

struct ReconcileOptions {
  std::chrono::milliseconds period{3000};
  std::size_t concurrent_updates = 8;
};

inline std::vector<config::ConfigKey> ReconcileKeys(ReconcileOptions& options) {
  return {config::DurationKey("reconcile-period", options.period, {"100ms", "10m"},
                              "How often changed allocations are brought to running containers.")};
}

}  // namespace qrm::manager
