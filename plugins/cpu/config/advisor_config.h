// Which pools an advisor outside sizes, and how far it is trusted.
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
  int target_percent = 75;    ///< so busy a pool's CPUs are to be
  int pressure_percent = 10;  ///< threads wait for a CPU in so much of the time: it is too small
  std::chrono::milliseconds every{10'000};
  std::string cgroup_root = "/sys/fs/cgroup";  ///< where cgroup v2 is mounted

  bool operator==(const UseRule&) const = default;
};

/// How Katalyst's advisor is asked.
struct KatalystRule {
  std::string socket;  ///< absolute; it serves cpuadvisor.CPUAdvisor
  std::chrono::milliseconds every{5000};

  bool operator==(const KatalystRule&) const = default;
};

/// The key `advisor`. Without any of the first three there is no advisor.
struct AdvisorConfig {
  std::string socket;                       ///< absolute; advisors connect to it
  std::optional<UseRule> use;               ///< set: there is one built in
  std::optional<KatalystRule> katalyst;     ///< set: that one is asked
  std::chrono::milliseconds lease{30'000};  ///< advice is in force for so long at most
  std::chrono::milliseconds hold{0};        ///< and for so long more when nobody renews it
  int max_step = 0;                ///< the most CPUs by which a plan follows advice; 0: any
  std::vector<std::string> pools;  ///< those that may be advised, by configured name

  bool IsThere() const { return !socket.empty() || use.has_value() || katalyst.has_value(); }
  bool Advises(const std::string& pool) const;
  bool operator==(const AdvisorConfig&) const = default;
};

/// The mapping `advisor` of the plugin's `section`; `by_advice` are the pools whose size says so,
/// which are meant where none are named. Errors: kInvalidArgument with file, line, key, value and
/// what is allowed.
StatusOr<AdvisorConfig> ParseAdvisor(const config::Section& section,
                                     std::vector<std::string> by_advice);

}  // namespace qrm::cpu
