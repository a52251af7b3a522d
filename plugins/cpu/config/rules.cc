// Reads rules.
#include "plugins/cpu/config/rules.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/section.h"

namespace qrm::cpu {
namespace {

using config::Section;
using Words = std::vector<std::string>;

/// The words of `key`; refused when it is there and has none, which would speak of everything.
StatusOr<Words> ReadWords(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(Words words, section.WordOrWords(key));
  if (section.Has(key) && words.empty()) {
    return section.Error(key, "names nothing", "write a word, a list of them, or leave it out");
  }
  return words;
}

StatusOr<TextSet> ReadTexts(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(const Words words, ReadWords(section, key));
  return TextSet(words);
}

/// Texts of which the values are known: a word that is none of them could never fit.
StatusOr<TextSet> ReadKnownTexts(const Section& section, std::string_view key,
                                 std::initializer_list<std::string_view> known) {
  QRM_ASSIGN_OR_RETURN(const Words words, ReadWords(section, key));
  for (const std::string& word : words) {
    const TextSet one({word.starts_with('!') ? word.substr(1) : word});
    if (std::none_of(known.begin(), known.end(), [&](auto value) { return one.Has(value); })) {
      return section.Error(key, fmt::format("has '{}', which is none of its values", word),
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
    return section.Error(key, "names nothing", "write entries such as {app: web}, or leave it out");
  }
  return pairs;
}

StatusOr<AmountSet> ReadAmounts(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const Words words, ReadWords(section, "cpu"));
  StatusOr<AmountSet> amounts = AmountSet::Parse(words);
  if (!amounts.ok()) {
    return section.Error("cpu",
                         fmt::format("is no amount of CPUs: {}", MessageOf(amounts.status())),
                         "correct the word");
  }
  return amounts;
}

StatusOr<Selector> ReadSelector(const Section& section) {
  // What no plugin is told cannot be selected: the rule would silently never fit.
  if (section.Has("priority")) {
    return section.Error("priority", "is not told to plugins",
                         "select by namespace, label or annotation");
  }
  QRM_RETURN_IF_ERROR(
      section.AllowKeys({"role", "qos", "qos-level", "namespace", "pod", "container",
                         "container-type", "label", "annotation", "cpu", "runtime-class"}));
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
  QRM_ASSIGN_OR_RETURN(select.cpus, ReadAmounts(section));
  return select;
}

StatusOr<Rule> ReadRule(const Section& section) {
  constexpr char kRemedy[] = "write one of pool: NAME, grant: NAME and leave-alone: true";
  QRM_RETURN_IF_ERROR(section.AllowKeys({"select", "pool", "grant", "leave-alone"}));
  const int targets = static_cast<int>(section.Has("pool")) +
                      static_cast<int>(section.Has("grant")) +
                      static_cast<int>(section.Has("leave-alone"));
  if (targets != 1) {
    return section.Error(targets == 0 ? "select" : "pool",
                         targets == 0 ? "leads nowhere" : "is not the only target", kRemedy);
  }
  Rule rule;
  QRM_ASSIGN_OR_RETURN(const Section select, section.Child("select"));
  QRM_ASSIGN_OR_RETURN(rule.select, ReadSelector(select));
  QRM_ASSIGN_OR_RETURN(const bool alone, section.Flag("leave-alone", false));
  if (section.Has("leave-alone")) {
    return alone ? StatusOr<Rule>(std::move(rule))
                 : section.Error("leave-alone", "is 'false', which leads nowhere", kRemedy);
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
