// Which pools an advisor outside sizes, and how far it is trusted.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// The key `advisor`. Without a socket there is no advisor.
struct AdvisorConfig {
  std::string socket;                       ///< absolute; advisors connect to it
  std::chrono::milliseconds lease{30'000};  ///< advice is in force for so long at most
  std::chrono::milliseconds hold{0};        ///< and for so long more when nobody renews it
  int max_step = 0;                ///< the most CPUs by which a plan follows advice; 0: any
  std::vector<std::string> pools;  ///< those that may be advised, by configured name

  bool Advises(const std::string& pool) const;
  bool operator==(const AdvisorConfig&) const = default;
};

/// The mapping `advisor` of the plugin's `section`; `by_advice` are the pools whose size says so,
/// which are meant where none are named. Errors: kInvalidArgument with file, line, key, value and
/// what is allowed.
StatusOr<AdvisorConfig> ParseAdvisor(const config::Section& section,
                                     std::vector<std::string> by_advice);

}  // namespace qrm::cpu
