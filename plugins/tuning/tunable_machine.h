// The machine's values that this process can set for classes of CPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "plugins/host/cpu_frequency.h"
#include "plugins/host/host_files.h"
#include "plugins/host/interrupts.h"

namespace qrm::tuning {

/// The uncore of a die, shared by its CPUs. Units: kHz, within the firmware's bounds.
struct Uncore {
  std::string directory;  ///< below the root
  CpuSet cpus;
  int64_t least = 0;
  int64_t most = 0;
};

struct TunableMachine {
  CpuSet cpus;  ///< online CPUs
  std::vector<host::FrequencyPolicy> policies;
  CpuSet wake_up;  ///< CPUs whose longest wake-up time can be set
  std::vector<Uncore> uncores;
  host::Interrupts interrupts;
};

/// Reads interrupts, which needs a look at every process, only `with_interrupts`. Cost: some files
/// for each CPU, interrupt and process. Source: the kernel's admin-guide/pm,
/// intel_uncore_frequency.
TunableMachine ReadTunableMachine(const host::HostFiles& files, bool with_interrupts);

}  // namespace qrm::tuning
