// Restores lost allocations in a plugin before it is asked for new ones.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "checkpoint/node_state.h"
#include "manager/admission/admission_options.h"
#include "manager/registry/calls/plugin_client.h"
#include "manager/registry/plugin_info.h"

namespace qrm::manager {

/// The state that a plugin is made equal to.
struct TeachingParts {
  std::shared_ptr<const checkpoint::NodeState> state;
  /// False: a record may belong to a removed pod, so the reconciler restores it later.
  bool live_is_known = true;
  /// Whether the container or its pod runs: an allocation without a record is not released then.
  std::function<bool(const ContainerKey& key)> is_live;
  const AdmissionOptions& options;
};

/// Gets the allocations of `plugin` through `client`, and restores recorded allocations that it
/// lacks. Before that, it releases CPUs that the plugin holds for no container, if records need
/// them. Sends at least one Restore, which may be empty, to show the plugin that the resync has
/// happened. Calls `ready` once, also after an error: the reconciler handles the rest, such as
/// plugins without Restore and other allocations without a container. Threads: any; never waits.
void TeachPlugin(const PluginInfo& plugin, const std::shared_ptr<PluginClient>& client,
                 const TeachingParts& parts, std::function<void()> ready);

}  // namespace qrm::manager
