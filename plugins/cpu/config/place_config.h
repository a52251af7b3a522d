// Reads where pools are to be, and which instances they have.
#pragma once

#include <optional>

#include "api/base/status.h"
#include "plugins/cpu/config/pool_rules.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// The mapping `place` of a pool, and what it may be without; whether the pools that it names exist
/// is for the caller to see. Errors: kInvalidArgument with file, line, key, value and what is
/// allowed.
StatusOr<PlaceRule> ParsePlace(const config::Section& pool);

/// The mapping `instances` of a pool; absent without it. Errors: the same.
StatusOr<std::optional<InstanceRule>> ParseInstances(const config::Section& pool);

}  // namespace qrm::cpu
