// Teaches a plugin what it lost before anybody asks it for more.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "checkpoint/node_state.h"
#include "manager/registry/calls/plugin_client.h"
#include "manager/registry/plugin_info.h"
#include "plugins/placement/admission_options.h"

namespace qrm::manager {

/// What a plugin is brought to.
struct TeachingParts {
  std::shared_ptr<const checkpoint::NodeState> state;
  /// False: a record may be of a pod that is gone, so that the reconciler teaches later.
  bool live_is_known = true;
  /// The container runs, or its pod does: what it has without a record is not taken from it.
  std::function<bool(const ContainerKey& key)> is_live;
  const placement::AdmissionOptions& options;
};

/// Asks `plugin` through `client` what it holds, and teaches it what is recorded beside that, if
/// only nothing: it learns that it is taught. Before, it lets go the CPUs that it holds for nobody
/// and that records say are somebody's own. Calls `ready` once, whatever came of it: the reconciler
/// sees to what it could not learn, as one that knows no more than the plugin API, and to what else
/// it holds for nobody. Threads: any; never waits.
void TeachPlugin(const PluginInfo& plugin, const std::shared_ptr<PluginClient>& client,
                 const TeachingParts& parts, std::function<void()> ready);

}  // namespace qrm::manager
