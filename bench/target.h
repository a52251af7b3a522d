// Lines that report whether a benchmark reached a target; scripts/bench.sh collects them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <time.h>

#include "api/base/durations.h"

namespace qrm::bench {

/// Prints "TARGET <what> | <= <limit> <unit> | <measured> <unit> | PASS" or FAIL; true for PASS.
inline bool Judge(std::string_view what, double limit, double measured, std::string_view unit) {
  const bool reached = measured <= limit;
  const std::string units(unit);
  std::printf("TARGET %s | <= %g %s | %.3g %s | %s\n", std::string(what).c_str(), limit,
              units.c_str(), measured, units.c_str(), reached ? "PASS" : "FAIL");
  return reached;
}

/// The value below which `part` of `samples`, at least one, lie.
inline double Quantile(std::vector<double> samples, double part) {
  std::sort(samples.begin(), samples.end());
  const auto index = static_cast<std::size_t>(part * static_cast<double>(samples.size()));
  return samples[std::min(index, samples.size() - 1)];
}

inline double Median(const std::vector<double>& samples) {
  return Quantile(samples, 0.5);
}

/// The time that `work` takes. Units: microseconds.
template <typename Work>
double MicrosecondsOf(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// The processor time of `clock` so far, such as CLOCK_PROCESS_CPUTIME_ID. Units: microseconds.
inline double ProcessorMicroseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// A line of /proc/PROCESS/status, such as "VmRSS"; a process is a PID or "self". Units: megabytes
/// (the file has KiB).
inline double MemoryOf(const std::string& process, const std::string& name) {
  const std::string path = "/proc/" + process + "/status";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  double kibibytes = 0;
  char line[256];
  while (file != nullptr && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::string_view(line).starts_with(name + ":")) {
      kibibytes = std::strtod(line + name.size() + 1, nullptr);
    }
  }
  if (file != nullptr) {
    std::fclose(file);
  }
  return kibibytes * 1024 / 1e6;
}

inline double Microseconds(std::chrono::nanoseconds took) {
  return std::chrono::duration<double, std::micro>(took).count();
}

}  // namespace qrm::bench
