// The nic plugin: NICs near a container's NUMA nodes, shared between containers.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/nic/config.h"
#include "plugins/nic/facts.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::nic {

/// A plugin that gives containers the NICs of `config`, or the machine's own NICs, with the state
/// in `facts`. `watch`, if set, reports changes. It registers as `config.resource`. Errors:
/// kInvalidArgument when the configuration does not fit the machine.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeNicPlugin(
    const NicPluginConfig& config, const Machine& machine, const NicFacts& facts,
    std::unique_ptr<FactsWatch> watch = nullptr);

}  // namespace qrm::nic
