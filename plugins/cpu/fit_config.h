// Fits the cpu plugin's configuration to the machine that it runs on.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/config/config.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// A configuration that a machine can serve.
struct FittingConfig {
  CpuPluginConfig config;
  std::vector<std::string> repairs;  ///< one sentence for each set of CPUs that was reduced
};

/// `config` on `machine`: CPUs that the machine lacks, as after a loss of hardware, leave their
/// sets. Errors: kInvalidArgument with pool and CPUs if the machine has none of a set, sets
/// overlap, or the default pool is empty.
StatusOr<FittingConfig> FitCpuConfig(const Machine& machine, CpuPluginConfig config);

}  // namespace qrm::cpu
