// The keys that rules and roles of several plugins have in common.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/rules/select.h"
#include "plugins/rules/sharing.h"

namespace qrm::config {

class Section;

/// Whether the manager reports the CPU requests of containers to a plugin, so that its rules can
/// select by them.
enum class ByCpu { kNo, kYes };

/// The selector `select` of `rule`; without it, a selector that fits all. Errors: kInvalidArgument
/// with file, line, key, value and the allowed values.
StatusOr<rules::Selector> ParseSelector(const Section& rule, ByCpu by_cpu);

/// The list `rules` of a plugin whose rules only lead to roles: `{select: ..., role: NAME}`.
/// Errors: as ParseSelector, and for a role that is not among `roles`.
StatusOr<std::vector<rules::RoleRule>> ParseRoleRules(const Section& section);

/// `numa: one | fewest | even | any`.
StatusOr<rules::NumaSpan> ParseNumaSpan(const Section& section, rules::NumaSpan fallback);

/// `share-numa-with: [ROLE, ...]`, `*` for all roles.
StatusOr<rules::ShareRule> ParseShareRule(const Section& section);

/// `exclusive-node-percent: 50`: the part of a NUMA node that a container must request to get it
/// exclusively by annotation. Errors: kInvalidArgument for more than 100.
StatusOr<uint64_t> ParseExclusiveNodePercent(const Section& section);

/// OK when every role that another role's rule names exists, and tolerates the other role. A rule
/// on one side only would never let them share a node. `roles` is the section with a mapping per
/// role. Errors: kInvalidArgument with file, line and both roles.
Status CheckShareRules(const Section& roles, const std::map<std::string, rules::ShareRule>& rules);

}  // namespace qrm::config
