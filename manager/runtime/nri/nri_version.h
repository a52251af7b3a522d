// Names the events to request from a runtime's NRI, and the known problems of its version.
#pragma once

#include <cstdint>
#include <string>

#include "manager/runtime/container.h"

namespace qrm::manager {

/// The events to subscribe to: one bit per event, 1 << (Event - 1). Every runtime with NRI has all
/// of them: a runtime rejects a plugin for an unknown bit.
int32_t SubscribedEvents();

/// Why this runtime's NRI is unsafe to use, as one sentence; empty when no problem is known.
std::string KnownProblemOf(const RuntimeInfo& runtime);

}  // namespace qrm::manager
