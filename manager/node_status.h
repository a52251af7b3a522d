// What qrmd says about itself: small values that the daemon fills and the edges print.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manager/runtime/container.h"

namespace qrm::manager {

/// How the reconcile loop fares.
struct ReconcileStatus {
  std::chrono::milliseconds period{0};
  std::optional<std::chrono::steady_clock::time_point> last;  ///< end of the latest run
  uint64_t runs = 0;
  uint64_t updates = 0;        ///< container updates that the runtime took
  uint64_t failures = 0;       ///< container updates and plugin answers that failed
  uint64_t drift_repairs = 0;  ///< cpusets of somebody else that were replaced by ours
  std::string last_problem;    ///< one sentence; empty when the latest run had none
};

/// How we come to know of containers.
enum class RuntimeMode { kNone, kNri, kObserver };

/// "none", "nri", "observer".
constexpr std::string_view ToString(RuntimeMode mode) {
  switch (mode) {
    case RuntimeMode::kNri:
      return "nri";
    case RuntimeMode::kObserver:
      return "observer";
    case RuntimeMode::kNone:
      break;
  }
  return "none";
}

/// How the runtime is reached.
struct RuntimeStatus {
  RuntimeMode mode = RuntimeMode::kNone;
  RuntimeInfo runtime;
  bool nri_connected = false;
  uint64_t nri_connects = 0;
  uint64_t nri_disconnects = 0;
  std::optional<std::chrono::steady_clock::time_point> last_sync;
  bool cri_reachable = false;
  std::string problem;  ///< one sentence; empty when all is well
};

/// The daemon as a whole.
struct NodeStatus {
  std::string version;
  std::chrono::steady_clock::time_point started;
  std::vector<std::string> not_ready_reasons;  ///< one sentence each; empty: ready
  std::vector<std::string> degraded_reasons;   ///< what works, but worse than it should
  std::vector<std::string> kubelet_conflicts;  ///< among the reasons: kubelet pins containers, too
  RuntimeStatus runtime;
  ReconcileStatus reconcile;
  std::string topology_policy;
  std::string state_path;
  std::vector<std::string> warnings;  ///< what was repaired or worked around since start

  bool ready() const { return not_ready_reasons.empty(); }
};

/// Returns the status as it is now. Threads: any; never waits.
using NodeStatusSource = std::function<NodeStatus()>;

/// What this process remembers of one decision.
struct DecisionTimes {
  /// When the runtime last took an update of its container.
  std::optional<std::chrono::system_clock::time_point> updated;
  /// What writing it to disk took, when something waited for that.
  std::optional<std::chrono::nanoseconds> commit;
};

/// One decision, for metrics and logs.
struct AdmissionEvent {
  enum class Result { kAdmitted, kRepeated, kSkipped, kRejected };
  Result result = Result::kAdmitted;
  std::string resource;  ///< whose plugin refused or failed; empty for none in particular
  std::chrono::nanoseconds took{0};
};

/// Told of every decision, on the state loop; must not wait.
using AdmissionListener = std::function<void(const AdmissionEvent&)>;

}  // namespace qrm::manager
