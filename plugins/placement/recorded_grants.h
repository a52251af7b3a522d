// Converts the checkpoint's records into the grants of a plugin.
#pragma once

#include <string>

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "plugins/placement/admission_options.h"
#include "plugins/placement/demand.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::placement {

/// The recorded demand of the container `name` of `pod`.
ContainerDemand RecordedDemand(const checkpoint::PodMeta& pod, const SharedText& name,
                               const checkpoint::ContainerRecord& record);

/// The allocation of the container `name` of `pod` as a grant of the plugin of `resource`, which
/// must hold it by `record`. The request is the recorded one; its hint is the allocation's nodes,
/// if the plugin reported them. Without a recorded request, as in an imported record, the allocated
/// amount counts.
sdk::Grant RecordedGrant(const checkpoint::PodMeta& pod, const std::string& name,
                         const checkpoint::ContainerRecord& record, const std::string& resource,
                         const AdmissionOptions& options);

/// All grants of the plugin of `resource` for that by the records of `state`. A built-in plugin
/// starts with them, since it keeps nothing on disk. Cost: O(containers).
sdk::Grants RecordedGrants(const checkpoint::NodeState& state, const std::string& resource,
                           const AdmissionOptions& options);

/// Whether `record` has an allocation of `resource` by the plugin of that resource.
bool Holds(const checkpoint::ContainerRecord& record, const std::string& resource);

}  // namespace qrm::placement
