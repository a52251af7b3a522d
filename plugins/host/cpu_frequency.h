// What a machine lets this process set of its CPUs' frequencies and idle states.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/id_set.h"
#include "plugins/host/host_files.h"

namespace qrm::host {

/// CPUs whose frequency is set together. Units: kHz.
struct FrequencyPolicy {
  std::string directory;  ///< below the root
  CpuSet cpus;            ///< those that are online
  int64_t least = 0;
  int64_t most = 0;
  int64_t base = 0;  ///< without turbo; 0 where the kernel does not tell
  std::vector<std::string> governors;
  std::vector<std::string> preferences;  ///< energy performance preferences; none: it has no such
};

/// Those that this process may set. Source: the kernel's admin-guide/pm/cpufreq, intel_pstate.
/// Cost: seven files for each policy.
std::vector<FrequencyPolicy> ReadFrequencyPolicies(const HostFiles& files);

/// The file with the longest time, in microseconds, that `cpu` may take to wake up. Source:
/// ABI/testing/sysfs-devices-power, pm_qos_resume_latency_us.
std::string WakeUpFile(int cpu);

/// The words of a file; none of one that cannot be read.
std::vector<std::string> WordsOf(const HostFiles& files, const std::string& path);
/// The number that a file holds; 0 of one that holds none.
int64_t NumberOf(const HostFiles& files, const std::string& path);

/// The number of kHz that "2.1GHz", "800 mhz" or "2100000kHz" is; nothing for what is none, has
/// less than a kHz, or more than 2^31 - 1 of them.
std::optional<int64_t> ParseFrequency(std::string_view text);

/// The decimal number `text` times ten to the power of `digits`; nothing for what is no number, or
/// would have to be rounded.
std::optional<int64_t> ParseDecimal(std::string_view text, int digits);

}  // namespace qrm::host
