// Gives threads a real-time priority.
#pragma once

#include <functional>
#include <vector>

#include "api/base/status.h"

namespace qrm::manager {

/// Runs the calling thread, but none that it starts, before all that are not real-time
/// (SCHED_RR): an admission passes from thread to thread, and on a node whose CPUs are all busy
/// each of them else waits for up to a tick (4 ms with 250 ticks a second).
/// `priority` is 1 to 99. Source: sched(7).
/// Errors: kPermissionDenied when the kernel does not allow it, with what to do; nothing has
/// changed then.
Status RunInRealTime(int priority);

/// The same for the calling thread and for others, each given by a function that runs a job on it.
/// None at priority 0. Errors: as above; no thread has changed then.
using PostToThread = std::function<void(std::function<void()>)>;
Status RunInRealTime(int priority, const std::vector<PostToThread>& threads);

}  // namespace qrm::manager
