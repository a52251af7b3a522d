// The key `select` in rules of several plugins.
#pragma once

#include <vector>

#include "api/base/status.h"
#include "plugins/placement/select.h"

namespace qrm::config {

class Section;

/// Whether the manager reports the CPU requests of containers to a plugin, so that its rules can
/// select by them.
enum class ByCpu { kNo, kYes };

/// The selector `select` of `rule`; without it, a selector that fits all. Errors: kInvalidArgument
/// with file, line, key, value and the allowed values.
StatusOr<placement::Selector> ParseSelector(const Section& rule, ByCpu by_cpu);

/// The list `rules` of a plugin whose rules only lead to roles: `{select: ..., role: NAME}`.
/// Errors: as ParseSelector, and for a role that is not among `roles`.
StatusOr<std::vector<placement::RoleRule>> ParseRoleRules(const Section& section);

}  // namespace qrm::config
