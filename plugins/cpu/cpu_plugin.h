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

/// The clock of plugins that are told no other.
inline const SystemClock kSystemClock{};

/// A plugin that places containers on the CPUs of `machine` as `config` says; configured CPUs that
/// the machine lacks are left out with a warning. `clock`, which outlives the plugin, says when
/// elastic pools have needed less for long enough. Errors: kInvalidArgument when the configuration
/// does not fit the machine all the same.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeCpuPlugin(const CpuPluginConfig& config,
                                                             const Machine& machine,
                                                             const Clock& clock = kSystemClock);

}  // namespace qrm::cpu
