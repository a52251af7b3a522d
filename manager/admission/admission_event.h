// The event that reports one decided admission, for metrics.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qrm::manager {

/// One decision, for metrics and logs.
struct AdmissionEvent {
  enum class Result { kAdmitted, kRepeated, kSkipped, kRejected };
  Result result = Result::kAdmitted;
  std::string resource;  ///< of the plugin that rejected or failed; empty: no plugin did
  /// Of a rejection: a word of RefusalReason, or "disk".
  std::string_view reason;
  std::chrono::nanoseconds took{0};

  /// A pod, and what its owner must know about it.
  struct Warning {
    std::string pod_namespace;
    std::string pod_name;
    std::string pod_uid;
    std::string message;
  };
  std::optional<Warning> rejected;             ///< set when that is the result
  std::optional<Warning> ignored;              ///< set when some of its annotations have no effect
  std::vector<std::string_view> ignored_keys;  ///< of these annotations; labels of a counter
};

}  // namespace qrm::manager
