// Names the events that are asked of a runtime's NRI, and what is wrong with its version.
#pragma once

#include <cstdint>
#include <string>

#include "manager/runtime/container.h"

namespace qrm::manager {

/// The events to subscribe to: one bit per event, 1 << (Event - 1). All of them are known to every
/// runtime with NRI: a bit that it does not know makes it refuse the plugin.
int32_t SubscribedEvents();

/// Why this runtime's NRI is unsafe to use, as one sentence; empty when it is not known to be.
std::string KnownProblemOf(const RuntimeInfo& runtime);

}  // namespace qrm::manager
