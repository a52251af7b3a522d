// How the runtime is followed: the options, with their defaults and keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/config_key.h"
#include "manager/reconcile/reconcile_options.h"

namespace qrm::manager {

struct ObserverOptions {
  /// Between two looks without an event; the reconciler's.
  std::chrono::milliseconds period = ReconcileOptions().period;
  std::chrono::milliseconds grace{2000};  ///< for NRI to come back by itself
  std::chrono::milliseconds min_gap{20};  ///< between two looks, however many events there are
  std::chrono::milliseconds gone_after{10000};
  std::chrono::milliseconds watch_retry{1000};
  std::size_t concurrent_statuses = 8;
  std::size_t values_per_period = 64;  ///< known containers that are asked for again
};

/// Whether what a resize was refused is tried again by itself.
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
      config::DurationKey("observer-grace", options.observer.grace, {"0s", "5m"},
                          "How long NRI may be away before the runtime is followed over CRI."),
      config::DurationKey("observer-gone-after", options.observer.gone_after, {"0s", "10m"},
                          "How long a pod must be missing from CRI's list, with its cgroups gone, "
                          "to be taken as removed while NRI is away."),
      config::DurationKey(
          "pod-ended-after", options.ended_after, {"0s", "60m"},
          "How long the place of a pod that has ended (its sandboxes have stopped, and no "
          "container is there) is kept for its return while nobody else lacks it."),
      config::DurationKey("pre-start-deadline", options.pre_start_deadline, {"10ms", "10s"},
                          "How long plugins that want to prepare containers may take before one "
                          "starts; no other of the node is made meanwhile. More than nine tenths "
                          "of admission-deadline counts as that."),
      config::DurationKey("adoption-grace", options.adoption_grace, {"0s", "10m"},
                          "How long after a start containers that run without a place wait for "
                          "plugins that were there before, so that all they get is aligned."),
      config::SwitchKey(
          "write-cpusets", options.write_cpusets,
          "Whether others leave the CPUs that a container gets for itself before it is "
          "made, by what is written to their cgroups, and not by the runtime's updates, "
          "which come later. For containers of compute drivers it is always so."),
      config::SwitchKey(
          "retry-resizes", options.retry_resizes,
          "Whether a container that grew in place without room is tried again every "
          "reconcile-period. With false it gets more at its next resize, or when it is made anew."),
  };
}

}  // namespace qrm::manager
