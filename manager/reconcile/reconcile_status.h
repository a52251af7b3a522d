// The status of the reconcile loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace qrm::manager {

/// The loop's runs and updates, and its latest problem.
struct ReconcileStatus {
  std::chrono::milliseconds period{0};
  std::optional<std::chrono::steady_clock::time_point> last;  ///< end of the latest run
  uint64_t runs = 0;
  uint64_t updates = 0;        ///< container updates that the runtime accepted
  uint64_t failures = 0;       ///< container updates and plugin answers that failed
  uint64_t drift_repairs = 0;  ///< cpusets that another writer set and qrmd replaced
  uint64_t deferred = 0;       ///< containers whose CPUs the runtime does not know yet
  std::string last_problem;    ///< one sentence; empty when the latest run had none
};

}  // namespace qrm::manager
