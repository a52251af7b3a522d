// How each CPU is tuned, by its owner.
#pragma once

#include "api/resource.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/state.h"
#include "plugins/kernel/tuning_profile.h"

namespace qrm::cpu {

/// The class of each online CPU: that of the pool, of the container's role or grant, or of reserved
/// or idle CPUs. CPUs of a compute driver are foreign: the driver tunes them. Cost: O(pools +
/// containers with exclusive CPUs).
kernel::TuningPlan PlanOf(const View& view);

/// Type -> class of the QoS-class resources of containers at `place` that request no class.
StringMap ClassDefaultsOf(const CpuPluginConfig& config, const Placement& place);

}  // namespace qrm::cpu
