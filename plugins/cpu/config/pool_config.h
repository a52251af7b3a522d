// Reads the pools of the cpu plugin's configuration.
#pragma once

#include <map>
#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/config/config.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// The mapping `pools`; `taken_roles` are placed elsewhere. Errors: kInvalidArgument with file,
/// line, key, value and the allowed values.
StatusOr<std::map<std::string, PoolConfig>> ParsePools(const config::Section& section,
                                                       std::set<std::string> taken_roles);

}  // namespace qrm::cpu
