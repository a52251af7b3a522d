// Reads rules.
#include "plugins/cpu/config/rules.h"

#include <utility>

#include <fmt/format.h>

#include "api/base/section.h"
#include "plugins/config/select_config.h"

namespace qrm::cpu {
namespace {

using config::Section;

StatusOr<Rule> ReadRule(const Section& section) {
  constexpr char kRemedy[] = "write one of pool: NAME, grant: NAME and leave-alone: true";
  QRM_RETURN_IF_ERROR(section.AllowKeys({"select", "pool", "grant", "leave-alone"}));
  const int targets = static_cast<int>(section.Has("pool")) +
                      static_cast<int>(section.Has("grant")) +
                      static_cast<int>(section.Has("leave-alone"));
  if (targets != 1) {
    return section.Error(targets == 0 ? "select" : "pool",
                         targets == 0 ? "has no target" : "is not the only target", kRemedy);
  }
  Rule rule;
  QRM_ASSIGN_OR_RETURN(rule.select, config::ParseSelector(section, config::ByCpu::kYes));
  QRM_ASSIGN_OR_RETURN(const bool alone, section.Flag("leave-alone", false));
  if (section.Has("leave-alone")) {
    return alone ? StatusOr<Rule>(std::move(rule))
                 : section.Error("leave-alone", "is 'false', so that the rule has no target",
                                 kRemedy);
  }
  const char* const key = section.Has("pool") ? "pool" : "grant";
  rule.target = section.Has("pool") ? Rule::Target::kPool : Rule::Target::kGrant;
  QRM_ASSIGN_OR_RETURN(rule.name, section.Text(key, ""));
  return rule;
}

}  // namespace

StatusOr<std::vector<Rule>> ParseRules(const Section& section) {
  std::vector<Rule> rules;
  QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items("rules"));
  for (const Section& item : items) {
    QRM_ASSIGN_OR_RETURN(Rule rule, ReadRule(item));
    rule.place = fmt::format("rules[{}] ({})", rules.size(), item.Place());
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace qrm::cpu
