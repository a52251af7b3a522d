// The memory plugin: containers bound to NUMA nodes by role, with the bytes of each node accounted.
#pragma once

#include <memory>

#include "api/status.h"
#include "plugins/memory/config.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::memory {

/// The resource name under which the plugin registers.
inline constexpr char kResource[] = "memory";

/// A plugin that places containers on the NUMA nodes of `machine` as `config` says. Errors:
/// kInvalidArgument when the configuration names a node that the machine does not have.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeMemoryPlugin(const MemoryPluginConfig& config,
                                                                const Machine& machine);

}  // namespace qrm::memory
