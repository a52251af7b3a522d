// What the checkpoint says that a plugin gave, in the plugin's own terms.
#pragma once

#include <string>

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "plugins/sdk/plugin.h"

namespace qrm::manager {

/// The request behind the allocation of `resource` that `record` has, as its plugin was asked; with
/// the nodes of the allocation as its hint where the plugin told them. `resource_names` maps the
/// pod's name of a resource to the plugin's. Where nobody noted the request, as of an imported
/// record, it is for what was given.
ContainerRequest RecordedRequest(const checkpoint::PodMeta& pod, const std::string& container,
                                 const checkpoint::ContainerRecord& record,
                                 const std::string& resource, const StringMap& resource_names);

/// All that the plugin of `resource` gave for its own resource, by the records of `state`: what a
/// built-in plugin begins with, since it keeps nothing on disk. Cost: O(containers).
sdk::Grants RecordedGrants(const checkpoint::NodeState& state, const std::string& resource,
                           const StringMap& resource_names);

}  // namespace qrm::manager
