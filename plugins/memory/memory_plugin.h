// The memory plugin: binds containers to NUMA nodes by role, and accounts for each node's bytes.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/memory/config.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::memory {

/// The resource name under which the plugin registers.
inline constexpr char kResource[] = "memory";

/// A plugin that places containers on the NUMA nodes of `machine` as `config` says. Reservations on
/// nodes that the machine lacks are dropped with a warning. Errors: kInvalidArgument when it lacks
/// all nodes with a reservation.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeMemoryPlugin(const MemoryPluginConfig& config,
                                                                const Machine& machine);

}  // namespace qrm::memory
