// How allocations are brought to running containers: the options, their defaults and their keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::manager {

/// When the runtime is told what containers have in the kernel already.
struct DeferralOptions {
  /// It does nothing else for so long: more than lies between two steps of a pod's life.
  std::chrono::milliseconds quiet{1000};
  std::chrono::milliseconds at_latest{10000};  ///< though it is busy
  std::chrono::milliseconds gap{20};           ///< between two containers
  /// How often the kernel is looked at meanwhile: half of the second in which it is corrected.
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
                              "How often changed allocations are brought to running containers.")};
}

}  // namespace qrm::manager
