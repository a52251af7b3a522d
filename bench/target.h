// Lines that report whether a benchmark reached a target; scripts/bench.sh collects them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace qrm::bench {

/// Prints "TARGET <what> | <= <limit> <unit> | <measured> <unit> | PASS" or FAIL; true for PASS.
inline bool Judge(std::string_view what, double limit, double measured, std::string_view unit) {
  const bool reached = measured <= limit;
  fmt::print("TARGET {} | <= {:g} {} | {:.3g} {} | {}\n", what, limit, unit, measured, unit,
             reached ? "PASS" : "FAIL");
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

inline double Microseconds(std::chrono::nanoseconds took) {
  return std::chrono::duration<double, std::micro>(took).count();
}

}  // namespace qrm::bench
