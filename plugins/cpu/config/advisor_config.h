// Which pools external advisors size, and within which limits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// How the built-in advisor sizes pools by what their containers use.
struct UseRule {
  int target_percent = 75;    ///< CPUs of a pool should be this busy
  int pressure_percent = 10;  ///< a pool is too small if threads wait for CPUs this often
  std::chrono::milliseconds every{10'000};
  std::string cgroup_root = "/sys/fs/cgroup";  ///< where cgroup v2 is mounted

  bool operator==(const UseRule&) const = default;
};

/// How to query Katalyst's advisor.
struct KatalystRule {
  std::string socket;  ///< absolute; it serves cpuadvisor.CPUAdvisor
  std::chrono::milliseconds every{5000};

  bool operator==(const KatalystRule&) const = default;
};

/// The key `advisor`. Without any of the first three members there is no advisor.
struct AdvisorConfig {
  std::string socket;                       ///< absolute; advisors connect to it
  std::optional<UseRule> use;               ///< set: the built-in advisor runs
  std::optional<KatalystRule> katalyst;     ///< set: Katalyst's advisor is queried
  std::chrono::milliseconds lease{30'000};  ///< the longest time that advice is in force
  std::chrono::milliseconds hold{0};        ///< how much longer it is in force if it is not renewed
  int max_step = 0;                ///< the most CPUs by which a plan follows advice; 0: any
  std::vector<std::string> pools;  ///< that may be advised, by configured name

  bool IsThere() const { return !socket.empty() || use.has_value() || katalyst.has_value(); }
  bool Advises(const std::string& pool) const;
  bool operator==(const AdvisorConfig&) const = default;
};

/// The mapping `advisor` of the plugin's `section`. If it names no pools, `by_advice` may be
/// advised: the pools whose size says so. Errors: kInvalidArgument with file, line, key, value and
/// the allowed values.
StatusOr<AdvisorConfig> ParseAdvisor(const config::Section& section,
                                     std::vector<std::string> by_advice);

}  // namespace qrm::cpu
