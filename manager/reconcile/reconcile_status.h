// The status of the reconcile loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace qrm::manager {

/// Runs, results and the latest problem.
struct ReconcileStatus {
  std::chrono::milliseconds period{0};
  std::optional<std::chrono::steady_clock::time_point> last;  ///< end of the latest run
  uint64_t runs = 0;
  uint64_t updates = 0;        ///< container updates that the runtime took
  uint64_t failures = 0;       ///< container updates and plugin answers that failed
  uint64_t drift_repairs = 0;  ///< cpusets of somebody else that were replaced by ours
  uint64_t deferred = 0;       ///< containers of whose CPUs the runtime has yet to be told
  std::string last_problem;    ///< one sentence; empty when the latest run had none
};

}  // namespace qrm::manager
