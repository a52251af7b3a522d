// What the checkpoint says that a plugin gave, in the plugin's own terms.
#pragma once

#include <string>

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/demand/demand_source.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/admission_options.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::manager {

/// What the container `name` of `pod` asked for by `record`.
placement::ContainerDemand RecordedDemand(const checkpoint::PodMeta& pod, const SharedText& name,
                                          const checkpoint::ContainerRecord& record);

/// The container `name` of `pod` as a grant of `plugin`, which `record` says gave its own resource:
/// the request as the plugin was asked, with the nodes of the allocation as its hint where the
/// plugin told them. Where nobody noted the request, as of an imported record, it is for what was
/// given.
sdk::Grant RecordedGrant(const checkpoint::PodMeta& pod, const std::string& name,
                         const checkpoint::ContainerRecord& record, const PluginInfo& plugin,
                         const placement::AdmissionOptions& options);

/// All that `plugin` gave for its own resource, by the records of `state`: what a built-in plugin
/// begins with, since it keeps nothing on disk. Cost: O(containers).
sdk::Grants RecordedGrants(const checkpoint::NodeState& state, const PluginInfo& plugin,
                           const placement::AdmissionOptions& options);

/// Whether `record` says that the plugin of `resource` gave that to its container.
bool Holds(const checkpoint::ContainerRecord& record, const std::string& resource);

}  // namespace qrm::manager
