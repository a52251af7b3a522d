// Which CPUs are tuned how, by their owners.
#pragma once

#include "api/resource.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/state.h"
#include "plugins/tuning/cpu_class.h"

namespace qrm::cpu {

/// The class of each CPU that is online: that of the pool, of the container's role or grant, or of
/// reserved or idle CPUs. CPUs that a compute driver gave are foreign: it tunes them. Cost:
/// O(pools + containers with CPUs of their own).
tuning::TuningPlan PlanOf(const View& view);

/// Type -> class of the QoS-class resources of containers that are led to `place`, where they ask
/// for none.
StringMap ClassDefaultsOf(const CpuPluginConfig& config, const Placement& place);

}  // namespace qrm::cpu
