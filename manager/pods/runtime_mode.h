// Derives which of NRI and CRI qrmd follows the runtime over.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "manager/pods/observer.h"
#include "manager/runtime/container.h"
#include "manager/runtime/nri/nri_plugin.h"
/// How qrmd learns of containers.
namespace qrm::manager {

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
  std::string problem;                         ///< one sentence; empty when there is none
  std::vector<std::string> not_ready_reasons;  ///< one sentence each
  std::vector<std::string> degraded_reasons;   ///< what works, but with limits
};

/// CRI's latest answer about the runtime.
struct CriStatus {
  RuntimeInfo runtime;  ///< of the latest good answer
  std::string problem;  ///< why the latest request failed: one sentence; empty: it did not
  /// When the latest request ended; absent before the first.
  std::optional<std::chrono::steady_clock::time_point> asked_at;
};

/// Adds why updates of running containers do not reach the runtime of `nri`, while that is
/// connected: CRI does not answer, or answers for another runtime.
void AddCriFaults(const NriStatus& nri, const CriStatus& cri, RuntimeStatus& status);

/// Sets `status.mode` and its reasons: the node is not ready without NRI and observer, and degraded
/// with only the observer.
void AddRuntimeMode(const NriStatus& nri, const ObserverStatus& observer, RuntimeStatus& status);

}  // namespace qrm::manager
