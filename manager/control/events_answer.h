// What `qrmctl events` asks: decisions in one line each.
#pragma once

#include <chrono>
#include <vector>

#include "checkpoint/decision_log.h"

namespace qrm::v1 {
class ListEventsResponse;
}  // namespace qrm::v1

namespace qrm::manager {

/// The decisions of `since` and later, oldest first.
v1::ListEventsResponse EventsAnswer(const std::vector<checkpoint::DecisionTrace>& decisions,
                                    std::chrono::system_clock::time_point since);

}  // namespace qrm::manager
