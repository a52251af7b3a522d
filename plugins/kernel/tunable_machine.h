// The CPUs' values that this process can set on the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/id_set.h"
#include "plugins/kernel/interrupts.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::kernel {

/// CPUs that share a frequency setting. Units: kHz.
struct FrequencyPolicy {
  std::string directory;  ///< below the root
  CpuSet cpus;            ///< online CPUs
  int64_t least = 0;
  int64_t most = 0;
  int64_t base = 0;  ///< without turbo; 0 if unknown
  std::vector<std::string> governors;
  std::vector<std::string> preferences;  ///< energy performance preferences; empty: not supported
};

/// The uncore of a die, shared by its CPUs. Units: kHz, within the firmware's bounds.
struct Uncore {
  std::string directory;  ///< below the root
  CpuSet cpus;
  int64_t least = 0;
  int64_t most = 0;
  int64_t bound = 0;  ///< the maximum in effect; 0 if unknown
};

struct TunableMachine {
  CpuSet cpus;  ///< online CPUs
  std::vector<FrequencyPolicy> policies;
  CpuSet wake_up;                ///< CPUs whose longest wake-up time can be set
  std::map<int, int64_t> ranks;  ///< CPU -> rank, if cores differ in speed; higher is faster
  std::vector<Uncore> uncores;
  Interrupts interrupts;
  bool partitions = false;  ///< whether a container's cgroup can be a cpuset partition
};

/// Reads interrupts, which needs a look at every process, only `with_interrupts`. Cost: some files
/// for each CPU, interrupt and process. Source: the kernel's admin-guide/pm/cpufreq, intel_pstate,
/// intel_uncore_frequency; ABI/testing/sysfs-devices-system-cpu.
TunableMachine ReadTunableMachine(const KernelFiles& files, bool with_interrupts);

/// The file with the longest permitted wake-up time of `cpu`, in microseconds. Source:
/// ABI/testing/sysfs-devices-power, pm_qos_resume_latency_us.
std::string WakeUpFile(int cpu);

/// The frequency "2.1GHz", "800 mhz" or "2100000kHz" in kHz; nothing if it is not a frequency, is
/// below 1 kHz, or above 2^31 - 1 kHz.
std::optional<int64_t> ParseFrequency(std::string_view text);

/// The decimal number `text` times ten to the power of `digits`; nothing if it is not a number, or
/// would have to be rounded.
std::optional<int64_t> ParseDecimal(std::string_view text, int digits);

}  // namespace qrm::kernel
