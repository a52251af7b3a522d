// NodeResourceTopology objects as an extended resource: decides as the upstream scheduler plugin.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type, and the custom resource that it reads.
inline constexpr char kNumaMatch[] = "numa-match";
inline constexpr char kTopologies[] = "noderesourcetopologies.v1alpha2.topology.node.k8s.io";

/// The amounts are those that the node wrote, as the plugin takes them without a cache of its own;
/// pods that were bound since then are not subtracted.
std::unique_ptr<Handle> MakeMatchHandle();

}  // namespace qrm::scheduler
