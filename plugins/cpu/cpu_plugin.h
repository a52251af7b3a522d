// The cpu plugin: exclusive CPUs by role, shared pools, and a default pool of what is left.
#pragma once

#include <memory>

#include "api/base/status.h"
#include "plugins/cpu/config.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// The resource name under which the plugin registers.
inline constexpr char kResource[] = "cpu";

/// A plugin that places containers on the CPUs of `machine` as `config` says; configured CPUs that
/// the machine lacks are left out with a warning. Errors: kInvalidArgument when the configuration
/// does not fit the machine all the same.
StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeCpuPlugin(const CpuPluginConfig& config,
                                                             const Machine& machine);

}  // namespace qrm::cpu
