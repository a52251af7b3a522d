// The configuration of compute drivers: their default containers, and what happens while a driver
// is not running.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/status.h"

namespace qrm::placement {

/// What happens to new containers of a driver while it is not running.
enum class WhenMissing {
  kRefuse,    ///< they are rejected
  kFallBack,  ///< the cpu plugin places them for good
};

/// What becomes of a pod with a container that this node rejects and cannot take later either.
enum class RejectAs {
  kRetry,  ///< kubelet tries again for ever
  kFail,   ///< it ends with the reason
};
StatusOr<RejectAs> ParseRejectAs(std::string_view word);

/// The configuration of one driver.
struct DriverRules {
  std::vector<std::string> namespaces;  ///< globs: may ask for it, independent of permissions
  std::vector<std::string> default_namespaces;  ///< globs: get it without asking
  std::vector<std::string> runtime_classes;     ///< pods of these get it without asking
  std::string spec;                             ///< of containers without a spec
  WhenMissing when_missing = WhenMissing::kRefuse;
  std::optional<RejectAs> reject_as;  ///< absent: as for pods without a driver
};

/// Driver -> rules. Other drivers have the default rules.
using DriverOptions = std::map<std::string, DriverRules>;

std::vector<config::ConfigKey> DriverKeys(DriverOptions& options);

}  // namespace qrm::placement
