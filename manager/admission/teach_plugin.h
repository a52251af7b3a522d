// Teaches a plugin what it lost before anybody asks it for more.
#pragma once

#include <functional>
#include <memory>

#include "checkpoint/node_state.h"
#include "manager/admission/admission_options.h"
#include "manager/registry/calls/plugin_client.h"
#include "manager/registry/plugin_info.h"

namespace qrm::manager {

/// Asks `plugin` through `client` what it holds, and teaches it what `state` records beside that.
/// Calls `ready` once, whatever came of it. The reconciler sees to what it could not learn, as one
/// that knows no more than the plugin API, or that has to let go first what it holds for nobody.
/// Threads: any; never waits.
void TeachPlugin(const PluginInfo& plugin, const std::shared_ptr<PluginClient>& client,
                 const std::shared_ptr<const checkpoint::NodeState>& state,
                 const AdmissionOptions& options, std::function<void()> ready);

}  // namespace qrm::manager
