// The options of the reconcile loop, with their defaults and keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

/// When containers without exclusive CPUs gain CPUs, and when the runtime gets the updates that
/// they already have in the kernel.
struct DeferralOptions {
  /// They gain CPUs once the runtime is idle for so long: a pod that follows another one then costs
  /// no writes between its steps, and often gets the CPUs that have just become free.
  std::chrono::milliseconds quiet_for_growth{300};
  std::chrono::milliseconds growth_at_latest{2000};  ///< gained then even if the runtime is busy
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
