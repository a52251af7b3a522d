// The options of the reconcile loop, with their defaults and keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

/// When the runtime gets the updates that containers already have in the kernel.
struct DeferralOptions {
  /// Sent once the runtime is idle for so long: longer than between two steps of a pod's life.
  std::chrono::milliseconds quiet{1000};
  std::chrono::milliseconds at_latest{10000};  ///< sent then even if the runtime is busy
  std::chrono::milliseconds gap{20};           ///< between two updates
  /// How often the cgroups are read meanwhile: half of the second in which drift is corrected.
  std::chrono::milliseconds look{500};
  std::chrono::milliseconds after_refusal{1000};
};

struct ReconcileOptions {
  std::chrono::milliseconds period{3000};
  std::size_t concurrent_updates = 8;
  DeferralOptions deferral = {};
};

inline std::vector<config::ConfigKey> ReconcileKeys(ReconcileOptions& options) {
  return {config::DurationKey("reconcile-period", options.period, {"100ms", "10m"},
                              "How often qrmd compares plugins, checkpoint, runtime and cgroups, "
                              "and updates running containers that differ.")};
}

}  // namespace qrm::manager
