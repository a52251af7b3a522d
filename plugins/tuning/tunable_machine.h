// What a machine lets this process set for classes of CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "plugins/host/cpu_frequency.h"
#include "plugins/host/host_files.h"
#include "plugins/host/interrupts.h"

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
  host::Interrupts interrupts;
};

/// The interrupts, for which every process is looked at, only `with_interrupts`.
/// Cost: some files for each CPU, interrupt and process. Source: the kernel's admin-guide/pm,
/// intel_uncore_frequency.
TunableMachine ReadTunableMachine(const host::HostFiles& files, bool with_interrupts);

}  // namespace qrm::tuning
