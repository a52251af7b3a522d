// The event that reports one decided admission, for metrics.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace qrm::manager {

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
