// How qrmd follows the runtime: the options, with their defaults and keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/config_key.h"
#include "manager/reconcile/reconcile_options.h"

namespace qrm::manager {

struct ObserverOptions {
  /// Between two looks without an event; equal to the reconciler's.
  std::chrono::milliseconds period = ReconcileOptions().period;
  std::chrono::milliseconds grace{2000};  ///< for NRI to return by itself
  std::chrono::milliseconds min_gap{20};  ///< between two looks, regardless of events
  std::chrono::milliseconds gone_after{10000};
  std::chrono::milliseconds watch_retry{1000};
  std::size_t concurrent_statuses = 8;
  std::size_t values_per_period = 64;  ///< known containers whose values are read again
};

/// Whether rejected resizes are tried again without an event.
enum class ResizeRetries { kOff, kOn };

struct PodsOptions {
  ObserverOptions observer;
  std::chrono::milliseconds ended_after{30'000};
  std::chrono::milliseconds pre_start_deadline{1000};
  std::chrono::milliseconds adoption_grace{10'000};
  bool write_cpusets = true;
  bool retry_resizes = true;

  ResizeRetries retries() const { return retry_resizes ? ResizeRetries::kOn : ResizeRetries::kOff; }
};

inline std::vector<config::ConfigKey> PodsKeys(PodsOptions& options) {
  return {
      config::DurationKey(
          "observer-grace", options.observer.grace, {"0s", "5m"},
          "How long NRI may be unavailable before qrmd follows the runtime over CRI."),
      config::DurationKey("observer-gone-after", options.observer.gone_after, {"0s", "10m"},
                          "How long a pod must be missing from CRI's list, with its cgroups gone, "
                          "before it counts as removed while NRI is unavailable."),
      config::DurationKey(
          "pod-ended-after", options.ended_after, {"0s", "60m"},
          "How long to reserve the resources of a terminated pod (its sandboxes have stopped, and "
          "no container exists) in case it restarts. They are released earlier if another pod "
          "needs them."),
      config::DurationKey("pre-start-deadline", options.pre_start_deadline, {"10ms", "10s"},
                          "How long plugins may take to prepare a container before it starts. The "
                          "node creates no other container meanwhile. At most nine tenths of "
                          "admission-deadline are used."),
      config::DurationKey("adoption-grace", options.adoption_grace, {"0s", "10m"},
                          "How long unpinned containers wait after a start of qrmd for the plugins "
                          "that ran before, so that all their allocations are aligned."),
      config::SwitchKey(
          "write-cpusets", options.write_cpusets,
          "Whether qrmd writes to cgroups to move other containers off exclusive CPUs before their "
          "owner is created. With false the runtime's updates move them later. For containers of "
          "compute drivers qrmd always writes."),
      config::SwitchKey(
          "retry-resizes", options.retry_resizes,
          "Whether an in-place resize that was rejected for lack of room is tried again every "
          "reconcile-period. With false the container gets more at its next resize, or when it is "
          "recreated."),
  };
}

}  // namespace qrm::manager
