// Changes and saves the pools of a plugin, or does neither.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::manager {

class NodeServices;

struct PoolChange {
  calls::SetPools::Request to;
  Deadline deadline;
  std::string by;  ///< who asked, for the log: "uid 0, pid 4711"
};

using PoolsDone = std::function<void(const StatusOr<std::vector<sdk::Pool>>& pools)>;

/// Makes `change` and logs it. `done` runs once, with all pools after they are saved: by the
/// plugin, or for a built-in plugin in the checkpoint. Errors: the plugin's; the disk's, which is
/// tried first: nothing has changed then. Where it fails only afterwards, the former pools are
/// restored. `plugins` and `node` outlive the calls. Threads: any; `done`
/// must not block.
void ChangePools(Plugins& plugins, NodeServices& node, const PoolChange& change,
                 const PoolsDone& done);

}  // namespace qrm::manager
