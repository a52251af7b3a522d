// The result of a dry run: what would become of a pod if it came now.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/decision_trace.h"

namespace qrm::manager {

/// What a dry run found.
struct DryRunReport {
  enum class Result : uint8_t { kAdmitted, kSkipped, kRejected };
  struct Decision {
    checkpoint::DecisionTrace trace;  ///< as that of an admission, under a UID of its own
    Result result = Result::kAdmitted;
    std::string message;
  };

  Result result = Result::kSkipped;  ///< rejected when any container is, skipped when all are
  std::string message;               ///< why, when it is not admitted: one sentence
  std::vector<Decision> decisions;   ///< as far as it got, in the order in which containers start
  std::vector<std::string> notes;    ///< what the result does not cover; one sentence each
};

/// "admitted", "skipped", "rejected".
constexpr std::string_view ToString(DryRunReport::Result result) {
  switch (result) {
    case DryRunReport::Result::kAdmitted:
      return "admitted";
    case DryRunReport::Result::kSkipped:
      return "skipped";
    case DryRunReport::Result::kRejected:
      break;
  }
  return "rejected";
}

}  // namespace qrm::manager
