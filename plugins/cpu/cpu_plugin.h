// The cpu plugin: exclusive CPUs by role, shared pools, and a default pool of what is left.
#pragma once

#include <memory>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "plugins/cpu/config/config.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// The resource name under which the plugin registers.
inline constexpr char kResource[] = "cpu";

/// The default clock of plugins.
inline const SystemClock kSystemClock{};

/// A plugin that places containers on the CPUs of `machine` as `config` says. Configured CPUs that
/// the machine lacks are dropped with a warning. `clock` outlives the plugin and measures how long
/// elastic pools have needed less. Errors: kInvalidArgument when the configuration still does not
/// fit the machine.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeCpuPlugin(const CpuPluginConfig& config,
                                                             const Machine& machine,
                                                             const Clock& clock = kSystemClock);

}  // namespace qrm::cpu
