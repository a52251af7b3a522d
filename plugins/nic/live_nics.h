// The nic plugin on the NICs of the machine it runs on.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/nic/config.h"
#include "plugins/nic/facts.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::nic {

/// What the kernel says now of the NICs that `config` is about. What cannot be read is missing, and
/// logged.
NicFacts ReadNicFacts(const NicPluginConfig& config);

/// MakeNicPlugin with what the kernel says, and follows it as `config.follow` has it. A `machine`
/// that is only described is another one than that whose NICs could be followed. Errors:
/// kInvalidArgument when the configuration does not fit the machine.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeLiveNicPlugin(NicPluginConfig config,
                                                                 const Machine& machine);

}  // namespace qrm::nic
