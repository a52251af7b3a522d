// Reads the pools of the cpu plugin's configuration.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/cpu/config/config.h"
#include "plugins/cpu/config/pool_rules.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// `10%` or `10`, from 1 to `most`; `fallback` is a percentage, too.
StatusOr<int> ReadPercent(const config::Section& section, std::string_view key, int fallback,
                          int most);

/// The mapping `pools`; `taken_roles` are placed elsewhere. Errors: kInvalidArgument with file,
/// line, key, value and the allowed values.
StatusOr<std::map<std::string, PoolConfig>> ParsePools(const config::Section& section,
                                                       std::set<std::string> taken_roles);

}  // namespace qrm::cpu
