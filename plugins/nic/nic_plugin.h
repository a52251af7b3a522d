// The nic plugin: NICs near a container's NUMA nodes, shared between containers.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/nic/addresses.h"
#include "plugins/nic/config.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::nic {

/// A plugin that gives containers the NICs of `config`, or the machine's own; `addresses` are those
/// of the machine's interfaces, as ReadAddresses returns them. It registers as `config.resource`.
/// Errors: kInvalidArgument when the configuration does not fit the machine.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeNicPlugin(const NicPluginConfig& config,
                                                             const Machine& machine,
                                                             const AddressesByInterface& addresses);

}  // namespace qrm::nic
