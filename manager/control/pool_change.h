// Changes the pools of a plugin so that they are kept, or not at all.
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

/// Makes `change`; `done` runs once, and learns all pools when they are on disk: with the plugin,
/// or for a built-in one in the checkpoint. The log then tells who changed what into what. Errors:
/// the plugin's; the disk's, when the pools are as before again. `plugins` and `node` outlive the
/// calls; threads: any, and `done` must not block.
void ChangePools(Plugins& plugins, NodeServices& node, const PoolChange& change,
                 const PoolsDone& done);

}  // namespace qrm::manager
