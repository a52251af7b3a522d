// The memory plugin: containers bound to NUMA nodes by role, with the bytes of each node accounted.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/memory/config.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::memory {

/// The resource name under which the plugin registers.
inline constexpr char kResource[] = "memory";

/// A plugin that places containers on the NUMA nodes of `machine` as `config` says; a reservation
/// on a node that the machine lacks is left out with a warning. Errors: kInvalidArgument when it
/// lacks all nodes with one.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeMemoryPlugin(const MemoryPluginConfig& config,
                                                                const Machine& machine);

}  // namespace qrm::memory
