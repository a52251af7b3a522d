// Derives what a runtime's NRI can do from the versions that it reports.
#pragma once

#include <cstdint>
#include <string>

#include "manager/runtime/container.h"

namespace qrm::manager {

/// The events to subscribe to: one bit per event, 1 << (Event - 1). A bit that the runtime does not
/// know makes it refuse the plugin, so events newer than NRI 0.9 are asked for only when it is
/// certainly newer. `nri_version` is empty before NRI 0.12.
int32_t EventMaskFor(const RuntimeInfo& runtime, const std::string& nri_version);

/// Why this runtime's NRI is unsafe to use, as one sentence; empty when it is not known to be.
std::string KnownProblemOf(const RuntimeInfo& runtime);

}  // namespace qrm::manager
