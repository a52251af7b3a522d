// The key `select` of the rules of several plugins.
#pragma once

#include <vector>

#include "api/base/status.h"
#include "plugins/rules/select.h"

namespace qrm::config {

class Section;

/// Whether a plugin is told how many CPUs containers request, so that its rules may go by that.
enum class ByCpu { kNo, kYes };

/// The selector `select` of `rule`; one that fits all when there is none. Errors: kInvalidArgument
/// with file, line, key, value and what is allowed.
StatusOr<rules::Selector> ParseSelector(const Section& rule, ByCpu by_cpu);

/// The list `rules` of a plugin that has roles and nothing else to lead to: `{select: ..., role:
/// NAME}`. Errors: as ParseSelector, and for a role that is not among `roles`.
StatusOr<std::vector<rules::RoleRule>> ParseRoleRules(const Section& section);

}  // namespace qrm::config
