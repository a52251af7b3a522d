// Matches namespaces and names, and reads the rules.
#include "manager/admission/permissions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/glob.h"
#include "api/base/section.h"

namespace qrm::manager {
namespace {

using config::ConfigKey;
using config::KeyShape;
using config::Section;

constexpr char kEverything[] = "everything";
constexpr char kAny[] = "*";

struct FeatureWord {
  Feature feature;
  std::string_view word;
};
constexpr std::array kFeatureWords = {
    FeatureWord{Feature::kOptOut, "opt-out"},
    FeatureWord{Feature::kReservedCpus, "reserved-cpus"},
    FeatureWord{Feature::kOwnCpus, "own-cpus"},
    FeatureWord{Feature::kNumaNodes, "numa-nodes"},
    FeatureWord{Feature::kNetworkNamespaces, "network-namespaces"},
};

/// "reserved-cpus", "pool batch": the wish in rejections.
std::string TextOf(const Wish& wish) {
  switch (wish.feature) {
    case Feature::kPool:
      return "pool " + Quoted(wish.name);
    case Feature::kRole:
      return "role " + Quoted(wish.name);
    case Feature::kResource:
      return "resource " + Quoted(wish.name);
    case Feature::kClass:
      return "class " + Quoted(wish.name);
    case Feature::kDriver:
      return "compute driver " + Quoted(wish.name);
    default:
      break;
  }
  const auto* const found =
      std::find_if(kFeatureWords.begin(), kFeatureWords.end(),
                   [&](const FeatureWord& word) { return word.feature == wish.feature; });
  QRM_CHECK(found != kFeatureWords.end());
  return std::string(found->word);
}

bool IsAllowed(const PermissionRule& rule, const Wish& wish) {
  switch (wish.feature) {
    case Feature::kPool:
      return MatchesAnyGlob(rule.pools, wish.name);
    case Feature::kRole:
      return MatchesAnyGlob(rule.roles, wish.name);
    case Feature::kResource:
      return MatchesAnyGlob(rule.resources, wish.name);
    case Feature::kClass:
      return MatchesAnyGlob(rule.classes, wish.name);
    case Feature::kDriver:
      return MatchesAnyGlob(rule.drivers, wish.name);
    default:
      return rule.allowed.contains(wish.feature);
  }
}

std::set<Feature> AllFeatures() {
  std::set<Feature> features;
  for (const FeatureWord& word : kFeatureWords) {
    features.insert(word.feature);
  }
  return features;
}

PermissionRule DefaultOfTheSystem() {
  return {.title = "the default rule of permissions for kube-system",
          .namespaces = {"kube-system"},
          .allowed = AllFeatures(),
          .pools = {kAny},
          .roles = {kAny},
          .resources = {kAny},
          .classes = {kAny},
          .drivers = {kAny}};
}

PermissionRule DefaultOfOthers() {
  return {.title = "the default rule of permissions",
          .namespaces = {kAny},
          .allowed = {Feature::kOwnCpus, Feature::kNumaNodes, Feature::kNetworkNamespaces},
          .pools = {kAny},
          .roles = {kAny},
          .resources = {kAny}};
}

std::vector<std::string> Words() {
  std::vector<std::string> words = {kEverything};
  for (const FeatureWord& word : kFeatureWords) {
    words.emplace_back(word.word);
  }
  return words;
}

std::optional<std::set<Feature>> ParseWord(const std::string& word) {
  if (word == kEverything) {
    return AllFeatures();
  }
  const auto* const found =
      std::find_if(kFeatureWords.begin(), kFeatureWords.end(),
                   [&](const FeatureWord& known) { return known.word == word; });
  return found == kFeatureWords.end() ? std::nullopt : std::optional(std::set{found->feature});
}

StatusOr<PermissionRule> ReadRule(const Section& item, std::size_t number) {
  QRM_RETURN_IF_ERROR(
      item.AllowKeys({"namespaces", "allow", "pools", "roles", "resources", "classes", "drivers"}));
  PermissionRule rule;
  QRM_ASSIGN_OR_RETURN(rule.namespaces, item.Words("namespaces"));
  if (rule.namespaces.empty()) {
    return item.Error("namespaces", "is missing, so that the rule applies to no pod",
                      "list namespaces, such as [batch, team-*], or [\"*\"] for all");
  }
  rule.title = fmt::format("rule {} of permissions (namespaces {})", number,
                           fmt::join(rule.namespaces, ", "));
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> words, item.Words("allow"));
  for (const std::string& word : words) {
    const std::optional<std::set<Feature>> features = ParseWord(word);
    if (!features.has_value()) {
      return item.Error("allow", fmt::format("has '{}', which is not a permission", word),
                        "choose from " + config::EnumerateWords(Words(), "and"));
    }
    rule.allowed.insert(features->begin(), features->end());
  }
  const bool everything = std::find(words.begin(), words.end(), kEverything) != words.end();
  for (const auto& [key, names] :
       {std::pair("pools", &rule.pools), std::pair("roles", &rule.roles),
        std::pair("resources", &rule.resources), std::pair("classes", &rule.classes),
        std::pair("drivers", &rule.drivers)}) {
    QRM_ASSIGN_OR_RETURN(*names, item.Words(key));
    if (everything && !item.Has(key)) {
      *names = {kAny};
    }
  }
  return rule;
}

std::string Show(const PermissionRule& rule) {
  return fmt::format(
      "{{namespaces: {}, allow: {}, pools: {}, roles: {}, resources: {}, classes: {}, "
      "drivers: {}}}",
      config::ListText(rule.namespaces), config::ListText(AllowedWords(rule)),
      config::ListText(rule.pools), config::ListText(rule.roles), config::ListText(rule.resources),
      config::ListText(rule.classes), config::ListText(rule.drivers));
}

}  // namespace

Permissions::Permissions(std::vector<PermissionRule> configured) : rules_(std::move(configured)) {
  rules_.push_back(DefaultOfTheSystem());
  rules_.push_back(DefaultOfOthers());
}

const PermissionRule& Permissions::RuleFor(std::string_view pod_namespace) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const PermissionRule& rule) {
    return MatchesAnyGlob(rule.namespaces, pod_namespace);
  });
  QRM_CHECK(found != rules_.end());  // the last rule matches all namespaces
  return *found;
}

bool Permissions::Allows(std::string_view pod_namespace, const Wish& wish) const {
  return IsAllowed(RuleFor(pod_namespace), wish);
}

Status Permissions::Check(std::string_view pod_namespace, const Wish& wish) const {
  const PermissionRule& rule = RuleFor(pod_namespace);
  if (IsAllowed(rule, wish)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "{} does not allow {} in namespace {} ({} asks for it); remove it from the pod, or "
                "allow it in a rule of permissions",
                rule.title, TextOf(wish), Quoted(pod_namespace), wish.key);
}

std::vector<std::string> AllowedWords(const PermissionRule& rule) {
  std::vector<std::string> words;
  for (const FeatureWord& word : kFeatureWords) {
    if (rule.allowed.contains(word.feature)) {
      words.emplace_back(word.word);
    }
  }
  return words;
}

ConfigKey PermissionsKey(std::string name, Permissions& place, std::string help) {
  return {.name = std::move(name),
          .shape = KeyShape::kList,
          .range = "list of {namespaces, allow, pools, roles, resources, classes, drivers}",
          .help = std::move(help),
          .read = [&place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items(key));
            std::vector<PermissionRule> rules;
            for (const Section& item : items) {
              QRM_ASSIGN_OR_RETURN(PermissionRule rule, ReadRule(item, rules.size() + 1));
              rules.push_back(std::move(rule));
            }
            place = Permissions(std::move(rules));
            return OkStatus();
          },
          .show =
              [&place] {
                std::vector<std::string> rules;
                constexpr std::size_t kDefaults = 2;
                for (std::size_t i = 0; i + kDefaults < place.rules().size(); ++i) {
                  rules.push_back(Show(place.rules()[i]));
                }
                return config::ListText(rules);
              }};
}

}  // namespace qrm::manager
