// What the operator says about compute drivers: whose containers are theirs without asking, and
// what happens while one is away.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/config_key.h"

namespace qrm::placement {

/// What becomes of a driver's containers while it is not there.
enum class WhenMissing {
  kRefuse,    ///< they are refused until it is
  kFallBack,  ///< the cpu plugin places them, and they stay so
};

/// What is set for one driver.
struct DriverRules {
  std::vector<std::string> namespaces;  ///< globs: those may ask for it, whatever permissions say
  std::vector<std::string> default_namespaces;  ///< globs: it is theirs without asking
  std::vector<std::string> runtime_classes;     ///< the same for pods of these
  std::string spec;                             ///< of containers that bring none
  WhenMissing when_missing = WhenMissing::kRefuse;
};

/// Driver -> rules. A driver that is not there has the default ones.
using DriverOptions = std::map<std::string, DriverRules>;

std::vector<config::ConfigKey> DriverKeys(DriverOptions& options);

}  // namespace qrm::placement
