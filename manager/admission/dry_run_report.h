// The result of a dry run.
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
    checkpoint::DecisionTrace trace;  ///< as of an admission, under a new UID
    Result result = Result::kAdmitted;
    std::string message;
  };

  Result result = Result::kSkipped;  ///< rejected if any container is, skipped if all are
  std::string message;               ///< why it is rejected or skipped: one sentence
  std::vector<Decision> decisions;   ///< until the first rejection, in the containers' start order
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
