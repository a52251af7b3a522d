// What `qrmctl events` asks: decisions in one line each.
#pragma once

#include <chrono>
#include <vector>

#include "api/proto/qrm/v1/control.pb.h"
#include "checkpoint/decision_log.h"

namespace qrm::manager {

/// The decisions of `since` and later, oldest first.
v1::ListEventsResponse EventsAnswer(const std::vector<checkpoint::DecisionTrace>& decisions,
                                    std::chrono::system_clock::time_point since);

}  // namespace qrm::manager
