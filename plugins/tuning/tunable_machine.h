// What a machine lets this process set for classes of CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "plugins/host/cpu_frequency.h"
#include "plugins/host/host_files.h"

namespace qrm::tuning {

/// What the CPUs of a die have in common beside their cores. Units: kHz, as the firmware bounds it.
struct Uncore {
  std::string directory;  ///< below the root
  CpuSet cpus;
  int64_t least = 0;
  int64_t most = 0;
};

struct TunableMachine {
  CpuSet cpus;  ///< those that are online
  std::vector<host::FrequencyPolicy> policies;
  CpuSet wake_up;  ///< CPUs whose longest time to wake up can be set
  std::vector<Uncore> uncores;
};

/// Cost: some files for each CPU. Source: the kernel's admin-guide/pm, intel_uncore_frequency.
TunableMachine ReadTunableMachine(const host::HostFiles& files);

}  // namespace qrm::tuning
