// Reads and checks the NUMA rules of roles.
#include "plugins/config/role_config.h"

#include <fmt/core.h>

#include "api/base/section.h"
#include "plugins/placement/exclusive_nodes.h"

namespace qrm::config {

using placement::NumaSpan;
using placement::ShareRule;

StatusOr<NumaSpan> ParseNumaSpan(const Section& section, NumaSpan fallback) {
  QRM_ASSIGN_OR_RETURN(
      const std::size_t span,
      section.Choice("numa", static_cast<std::size_t>(fallback), {"one", "fewest", "even", "any"}));
  return static_cast<NumaSpan>(span);
}

StatusOr<ShareRule> ParseShareRule(const Section& section) {
  ShareRule rule;
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> words, section.Words("share-numa-with"));
  for (const std::string& word : words) {
    if (word == "*") {
      rule.anyone = true;
    } else {
      rule.roles.insert(word);
    }
  }
  return rule;
}

StatusOr<uint64_t> ParseExclusiveNodePercent(const Section& section) {
  constexpr char kKey[] = "exclusive-node-percent";
  QRM_ASSIGN_OR_RETURN(const uint64_t percent,
                       section.Number(kKey, placement::kUsualExclusiveNodePercent));
  if (percent > 100) {
    return section.Error(kKey, fmt::format("is {}, which is more than 100", percent),
                         "write 0 to 100; 0 requires nothing");
  }
  return percent;
}

Status CheckShareRules(const Section& roles, const std::map<std::string, ShareRule>& rules) {
  for (const auto& [role, rule] : rules) {
    for (const std::string& other : rule.roles) {
      const auto found = rules.find(other);
      if (found == rules.end()) {
        return roles.Error(role,
                           fmt::format("shares NUMA nodes with '{}', which is not a role", other),
                           "name roles of this section, or `*` for everyone");
      }
      if (!found->second.anyone && !found->second.roles.contains(role)) {
        return roles.Error(
            role,
            fmt::format("shares NUMA nodes with {}, which does not share with {}", other, role),
            fmt::format("add {} to share-numa-with of {}", role, other));
      }
    }
  }
  return OkStatus();
}

}  // namespace qrm::config
