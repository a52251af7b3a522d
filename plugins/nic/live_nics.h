// The nic plugin for the NICs of its own machine.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/nic/config.h"
#include "plugins/nic/facts.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::nic {

/// The kernel's current state of the NICs of `config`. Logs and leaves out what cannot be read.
NicFacts ReadNicFacts(const NicPluginConfig& config);

/// MakeNicPlugin with the kernel's state, which it follows as `config.follow` says. It follows
/// nothing if `machine` is only described. Errors: kInvalidArgument when the configuration does not
/// fit the machine.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeLiveNicPlugin(NicPluginConfig config,
                                                                 const Machine& machine);

}  // namespace qrm::nic
