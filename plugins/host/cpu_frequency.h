// Which frequencies and idle states of CPUs this process can set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/id_set.h"
#include "plugins/host/host_files.h"

namespace qrm::host {

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

/// The policies that this process may set. Source: the kernel's admin-guide/pm/cpufreq,
/// intel_pstate. Cost: seven files for each policy.
std::vector<FrequencyPolicy> ReadFrequencyPolicies(const HostFiles& files);

/// The file with the longest permitted wake-up time of `cpu`, in microseconds. Source:
/// ABI/testing/sysfs-devices-power, pm_qos_resume_latency_us.
std::string WakeUpFile(int cpu);

/// The words of a file; empty if it cannot be read.
std::vector<std::string> WordsOf(const HostFiles& files, const std::string& path);
/// The number in a file; 0 if there is none.
int64_t NumberOf(const HostFiles& files, const std::string& path);

/// The frequency "2.1GHz", "800 mhz" or "2100000kHz" in kHz; nothing if it is not a frequency, is
/// below 1 kHz, or above 2^31 - 1 kHz.
std::optional<int64_t> ParseFrequency(std::string_view text);

/// The decimal number `text` times ten to the power of `digits`; nothing if it is not a number, or
/// would have to be rounded.
std::optional<int64_t> ParseDecimal(std::string_view text, int digits);

}  // namespace qrm::host
