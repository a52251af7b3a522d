// The answer for `qrmctl events`: decisions and other events, one line each.
#pragma once

#include <chrono>
#include <vector>

#include "checkpoint/decision_log.h"

namespace qrm::v1 {
class ListEventsResponse;
}  // namespace qrm::v1

namespace qrm::manager {

/// The decisions and other events at `since` and later, oldest first.
v1::ListEventsResponse EventsAnswer(const std::vector<checkpoint::DecisionTrace>& traces,
                                    std::chrono::system_clock::time_point since);

}  // namespace qrm::manager
