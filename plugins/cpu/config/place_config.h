// Reads where pools should have their CPUs, and which instances they have.
#pragma once

#include <optional>

#include "api/base/status.h"
#include "plugins/cpu/config/pool_rules.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// The mapping `place` of a pool, absent or not. The caller checks that the named pools exist.
/// Errors: kInvalidArgument with file, line, key, value and the allowed values.
StatusOr<PlaceRule> ParsePlace(const config::Section& pool);

/// The mapping `instances` of a pool; absent without it. Errors: the same.
StatusOr<std::optional<InstanceRule>> ParseInstances(const config::Section& pool);

}  // namespace qrm::cpu
