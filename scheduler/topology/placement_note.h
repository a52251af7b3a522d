// The decision about a pod as text: what rides on its binding, so that a restart finds it again.
#pragma once

#include <optional>
#include <string>

#include "plugins/placement/node_model.h"
#include "plugins/placement/walk.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// What the containers of `pod` ask of the node of `model`.
placement::PodDemands DemandsOf(const placement::NodeModel& model, const Pod& pod);

/// The annotation.
inline constexpr char kPlacement[] = "qrm.io/placement";

/// What `placement` gives containers of their own: CPUs, memory nodes, NICs. JSON, the same for the
/// same placement; empty when there is nothing.
std::string WritePlacement(const placement::PodPlacement& placement);

/// The placement of `pod` as its annotation says; absent without one, when it cannot be read, and
/// when it gives a container more than that requests.
std::optional<placement::PodPlacement> ReadPlacement(const placement::NodeModel& model,
                                                     const Pod& pod);

}  // namespace qrm::scheduler
