// Which containers a rule of the configuration selects: pure comparison of texts and amounts.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"

namespace qrm::rules {

/// Texts by a list of globs: `*` is any text, `?` any character, and `!glob` excludes. A text is in
/// the set if a glob matches it, or if there are only globs that exclude, and no such glob matches
/// it. A default set has every text.
class TextSet {
 public:
  TextSet() = default;
  explicit TextSet(const std::vector<std::string>& globs);

  bool Has(std::string_view text) const;
  /// Whether the set includes a missing text, such as a role or label that the pod lacks.
  bool HasNothing() const { return included_.empty(); }

  bool operator==(const TextSet&) const = default;

 private:
  std::vector<std::string> included_;
  std::vector<std::string> excluded_;
};

/// Amounts, as of CPUs: `whole` and `fraction` are amounts from 1 on without and all amounts with a
/// fraction; bounds are `4`, `2..8`, `>=2`, `>2`, `<=8` and `<8`. A default set has every amount.
class AmountSet {
 public:
  AmountSet() = default;
  /// The amounts of all `words` together. Errors: kInvalidArgument with the word and the allowed
  /// forms.
  static StatusOr<AmountSet> Parse(const std::vector<std::string>& words);

  bool Has(double amount) const;
  bool HasEvery() const { return every_; }

  bool operator==(const AmountSet&) const = default;

 private:
  struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool without_low = false;
    bool without_high = false;
    bool operator==(const Range&) const = default;
  };
  static StatusOr<Range> ParseRange(std::string_view word);

  bool every_ = true;
  bool whole_ = false;
  bool fraction_ = false;
  std::vector<Range> ranges_;
};

/// The conditions on a container for a rule to select it: each part must fit. A default selector
/// fits all.
struct Selector {
  TextSet role;
  TextSet qos;        ///< the pod's class: "Guaranteed", "Burstable" or "BestEffort"
  TextSet qos_level;  ///< the pod's annotation: "shared_cores", ...
  TextSet pod_namespace;
  TextSet pod;
  TextSet container;
  TextSet container_type;  ///< "main", "sidecar", "init" or "ephemeral"
  TextSet runtime_class;
  std::map<std::string, TextSet> labels;       ///< the pod's, by key
  std::map<std::string, TextSet> annotations;  ///< the pod's, by key
  AmountSet cpus;                              ///< that it requests
  AmountSet priority;  ///< the pod's; an unknown priority is within no bounds

  bool operator==(const Selector&) const = default;
};

/// Cost: O(text of the selector), no allocation.
bool Matches(const Selector& selector, const ContainerRequest& request);

/// "container c of pod ns/p", quoted, as messages name it.
std::string NameOf(const ContainerRequest& request);

/// A rule of a plugin that only has roles: its containers are placed as if they had `role`.
struct RoleRule {
  Selector select;
  std::string role;
  std::string place;  ///< "rules[2] (memory.yaml:14)", for people

  bool operator==(const RoleRule&) const = default;
};

/// The first of `rules` that fits the container; null: its pod's own role applies.
const RoleRule* FirstFitting(const std::vector<RoleRule>& rules, const ContainerRequest& request);

/// Whether any of `rules`, which have a member `select`, selects by the names of pods.
template <typename Rule>
bool NamePods(const std::vector<Rule>& rules) {
  return std::any_of(rules.begin(), rules.end(),
                     [](const Rule& rule) { return rule.select.pod != TextSet(); });
}

/// "main" for MAIN, and so on: the words in configuration files.
std::string_view WordOf(ContainerType type);

}  // namespace qrm::rules
