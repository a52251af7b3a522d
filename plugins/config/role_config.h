// The keys that the roles of several plugins have in common.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/base/status.h"
#include "plugins/placement/sharing.h"

namespace qrm::config {

class Section;

/// `numa: one | fewest | even | any`.
StatusOr<placement::NumaSpan> ParseNumaSpan(const Section& section, placement::NumaSpan fallback);

/// `share-numa-with: [ROLE, ...]`, `*` for all roles.
StatusOr<placement::ShareRule> ParseShareRule(const Section& section);

/// `exclusive-node-percent: 50`: the part of a NUMA node that a container must request to get it
/// exclusively by annotation. Errors: kInvalidArgument for more than 100.
StatusOr<uint64_t> ParseExclusiveNodePercent(const Section& section);

/// OK when every role that another role's rule names exists, and tolerates the other role. A rule
/// on one side only would never let them share a node. `roles` is the section with a mapping per
/// role. Errors: kInvalidArgument with file, line and both roles.
Status CheckShareRules(const Section& roles,
                       const std::map<std::string, placement::ShareRule>& rules);

}  // namespace qrm::config
