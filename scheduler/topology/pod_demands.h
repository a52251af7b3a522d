// A pod of the cache as the walk of its node takes it.
#pragma once

#include "plugins/placement/walk.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// What the containers of `pod` ask of the node of `model`.
placement::PodDemands DemandsOf(const placement::NodeModel& model, const Pod& pod);

}  // namespace qrm::scheduler
