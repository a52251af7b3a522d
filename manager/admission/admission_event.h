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

  /// A text for the events of a pod.
  struct PodMessage {
    std::string pod_namespace;
    std::string pod_name;
    std::string pod_uid;
    std::string message;
    std::string reason;  ///< of the event
  };
  std::optional<PodMessage> rejected;          ///< why; set when that is the result
  std::vector<PodMessage> warnings;            ///< about an admitted container
  std::vector<std::string_view> ignored_keys;  ///< of its annotations; labels of a counter
};

}  // namespace qrm::manager
