// Reads selectors, rules that use them, and the NUMA rules of roles.
#include "plugins/config/select_config.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/section.h"
#include "plugins/rules/sharing.h"

namespace qrm::config {

using rules::AmountSet;
using rules::Selector;
using rules::TextSet;

namespace {

using Words = std::vector<std::string>;

/// The words of `key`. Errors: also if the key exists without words, since it would select all.
StatusOr<Words> ReadWords(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(Words words, section.WordOrWords(key));
  if (section.Has(key) && words.empty()) {
    return section.Error(key, "is empty", "write a word or a list of words, or remove it");
  }
  return words;
}

StatusOr<TextSet> ReadTexts(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(const Words words, ReadWords(section, key));
  return TextSet(words);
}

/// Texts with known values: a word that matches no value could never fit.
StatusOr<TextSet> ReadKnownTexts(const Section& section, std::string_view key,
                                 std::initializer_list<std::string_view> known) {
  QRM_ASSIGN_OR_RETURN(const Words words, ReadWords(section, key));
  for (const std::string& word : words) {
    const TextSet one({word.starts_with('!') ? word.substr(1) : word});
    if (std::ranges::none_of(known, [&](auto value) { return one.Has(value); })) {
      return section.Error(key, fmt::format("has '{}', which is not one of its values", word),
                           fmt::format("write {}", fmt::join(known, " or ")));
    }
  }
  return TextSet(words);
}

StatusOr<std::map<std::string, TextSet>> ReadPairs(const Section& section, std::string_view key) {
  std::map<std::string, TextSet> pairs;
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child(key));
  for (const std::string& name : child.Keys()) {
    QRM_ASSIGN_OR_RETURN(pairs[name], ReadTexts(child, name));
  }
  if (section.Has(key) && pairs.empty()) {
    return section.Error(key, "is empty", "write entries such as {app: web}, or remove it");
  }
  return pairs;
}

/// Bounds of numbers. Errors: kInvalidArgument.
StatusOr<AmountSet> ReadAmounts(const Section& section, std::string_view key, const char* remedy) {
  QRM_ASSIGN_OR_RETURN(const Words words, ReadWords(section, key));
  StatusOr<AmountSet> amounts = AmountSet::Parse(words);
  return amounts.ok() ? std::move(amounts)
                      : section.Error(key, MessageOf(amounts.status()), remedy);
}

StatusOr<AmountSet> ReadPriority(const Section& section) {
  constexpr char kRemedy[] = "write bounds such as '>=9000' or 0..100";
  QRM_ASSIGN_OR_RETURN(const Words words, section.WordOrWords("priority"));
  for (const std::string& word : words) {
    if (word == "whole" || word == "fraction") {
      return section.Error("priority", fmt::format("has '{}', which is not a priority", word),
                           kRemedy);
    }
  }
  return ReadAmounts(section, "priority", kRemedy);
}

}  // namespace

StatusOr<Selector> ParseSelector(const Section& rule, ByCpu by_cpu) {
  QRM_ASSIGN_OR_RETURN(const Section section, rule.Child("select"));
  if (by_cpu == ByCpu::kNo && section.Has("cpu")) {
    return section.Error("cpu", "is only known to the cpu plugin",
                         "select by namespace, label or annotation");
  }
  QRM_RETURN_IF_ERROR(section.AllowKeys({"role", "qos", "qos-level", "namespace", "pod",
                                         "container", "container-type", "label", "annotation",
                                         "cpu", "runtime-class", "priority"}));
  Selector select;
  const std::pair<const char*, TextSet*> texts[] = {
      {"role", &select.role},
      {"namespace", &select.pod_namespace},
      {"pod", &select.pod},
      {"container", &select.container},
      {"runtime-class", &select.runtime_class},
  };
  for (const auto& [key, set] : texts) {
    QRM_ASSIGN_OR_RETURN(*set, ReadTexts(section, key));
  }
  QRM_ASSIGN_OR_RETURN(select.qos,
                       ReadKnownTexts(section, "qos", {"Guaranteed", "Burstable", "BestEffort"}));
  QRM_ASSIGN_OR_RETURN(select.qos_level, ReadKnownTexts(section, "qos-level",
                                                        {"dedicated_cores", "shared_cores",
                                                         "reclaimed_cores", "system_cores"}));
  QRM_ASSIGN_OR_RETURN(
      select.container_type,
      ReadKnownTexts(section, "container-type", {"main", "sidecar", "init", "ephemeral"}));
  QRM_ASSIGN_OR_RETURN(select.labels, ReadPairs(section, "label"));
  QRM_ASSIGN_OR_RETURN(select.annotations, ReadPairs(section, "annotation"));
  QRM_ASSIGN_OR_RETURN(
      select.cpus, ReadAmounts(section, "cpu", "write whole, fraction, or bounds such as '>=2'"));
  QRM_ASSIGN_OR_RETURN(select.priority, ReadPriority(section));
  return select;
}

StatusOr<std::vector<rules::RoleRule>> ParseRoleRules(const Section& section) {
  std::vector<rules::RoleRule> rules;
  QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items("rules"));
  QRM_ASSIGN_OR_RETURN(const Section roles, section.Child("roles"));
  for (const Section& item : items) {
    QRM_RETURN_IF_ERROR(item.AllowKeys({"select", "role"}));
    rules::RoleRule rule;
    rule.place = fmt::format("rules[{}] ({})", rules.size(), item.Place());
    QRM_ASSIGN_OR_RETURN(rule.select, ParseSelector(item, ByCpu::kNo));
    QRM_ASSIGN_OR_RETURN(rule.role, item.Text("role", ""));
    if (!roles.Has(rule.role)) {
      return item.Error("role", fmt::format("is '{}', which is not a role", rule.role),
                        "name a role of this plugin's `roles`");
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

using rules::NumaSpan;
using rules::ShareRule;

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
                       section.Number(kKey, rules::kUsualExclusiveNodePercent));
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
