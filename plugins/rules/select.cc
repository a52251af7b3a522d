// Compares containers with selectors.
#include "plugins/rules/select.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/base/glob.h"
#include "api/base/number.h"
#include "plugins/rules/device_nodes.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::rules {
namespace {

/// Whether `text` is in `set`; an empty text means that there is none.
bool Fits(const TextSet& set, std::string_view text) {
  return text.empty() ? set.HasNothing() : set.Has(text);
}

bool MatchesEach(const std::map<std::string, TextSet>& wanted, const StringMap& given) {
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    const auto found = given.find(entry.first);
    return found == given.end() ? entry.second.HasNothing() : entry.second.Has(found->second);
  });
}

std::string_view ValueOf(const StringMap& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

bool FitsPriority(const AmountSet& set, const StringMap& annotations) {
  if (set.HasEvery()) {
    return true;
  }
  const auto priority = ParseNumber<int>(ValueOf(annotations, kPodPriorityAnnotation));
  return priority.has_value() && set.Has(*priority);
}

bool IsWhole(double amount) {
  return amount >= 1 && std::floor(amount) == amount;
}

}  // namespace

TextSet::TextSet(const std::vector<std::string>& globs) {
  for (const std::string& glob : globs) {
    if (glob.starts_with('!')) {
      excluded_.push_back(glob.substr(1));
    } else {
      included_.push_back(glob);
    }
  }
}

bool TextSet::Has(std::string_view text) const {
  const auto fits = [&](const std::vector<std::string>& globs) {
    return MatchesAnyGlob(globs, text, Wildcards::kStarAndQuestionMark);
  };
  return (included_.empty() || fits(included_)) && !fits(excluded_);
}

StatusOr<AmountSet::Range> AmountSet::ParseRange(std::string_view word) {
  Status wrong =
      Errorf(StatusCode::kInvalidArgument,
             "cannot read the amount '{}'; write numbers such as 4, 2..8, '>=2' or '<8'", word);
  Range range;
  if (const std::size_t dots = word.find(".."); dots != std::string_view::npos) {
    const auto low = ParseNumber<double>(word.substr(0, dots));
    const auto high = ParseNumber<double>(word.substr(dots + 2));
    if (!low.has_value() || !high.has_value() || !(*low <= *high)) {
      return wrong;
    }
    return Range{.low = *low, .high = *high};
  }
  const bool below = word.starts_with('<');
  const bool above = word.starts_with('>');
  word.remove_prefix(below || above ? 1 : 0);
  const bool with = word.starts_with('=');
  word.remove_prefix(with && (below || above) ? 1 : 0);
  const auto number = ParseNumber<double>(word);
  if (!number.has_value() || !std::isfinite(*number)) {
    return wrong;
  }
  if (!below) {
    range.low = *number;
    range.without_low = above && !with;
  }
  if (!above) {
    range.high = *number;
    range.without_high = below && !with;
  }
  return range;
}

StatusOr<AmountSet> AmountSet::Parse(const std::vector<std::string>& words) {
  AmountSet set;
  for (const std::string& word : words) {
    set.every_ = false;
    if (word == "whole") {
      set.whole_ = true;
    } else if (word == "fraction") {
      set.fraction_ = true;
    } else {
      QRM_ASSIGN_OR_RETURN(const Range range, ParseRange(word));
      set.ranges_.push_back(range);
    }
  }
  return set;
}

bool AmountSet::Has(double amount) const {
  const auto in = [&](const Range& range) {
    return (range.without_low ? amount > range.low : amount >= range.low) &&
           (range.without_high ? amount < range.high : amount <= range.high);
  };
  return every_ || (whole_ && IsWhole(amount)) || (fraction_ && std::floor(amount) != amount) ||
         std::ranges::any_of(ranges_, in);
}

bool Matches(const Selector& selector, const ContainerRequest& request) {
  return Fits(selector.role, request.pod_role) && Fits(selector.qos, request.native_qos_class) &&
         Fits(selector.qos_level, ValueOf(request.annotations, kQosLevelKey)) &&
         Fits(selector.pod_namespace, request.pod_namespace) &&
         Fits(selector.pod, request.pod_name) && Fits(selector.container, request.key.container) &&
         Fits(selector.container_type, WordOf(request.type)) &&
         Fits(selector.runtime_class, request.runtime_class) &&
         MatchesEach(selector.labels, request.labels) &&
         MatchesEach(selector.annotations, request.annotations) &&
         FitsPriority(selector.priority, request.annotations) &&
         selector.cpus.Has(request.quantity());
}

const RoleRule* FirstFitting(const std::vector<RoleRule>& rules, const ContainerRequest& request) {
  const auto rule = std::ranges::find_if(
      rules, [&](const RoleRule& one) { return Matches(one.select, request); });
  return rule == rules.end() ? nullptr : &*rule;
}

std::string NameOf(const ContainerRequest& request) {
  return fmt::format("container {} of pod {}/{}", Quoted(request.key.container),
                     Quoted(request.pod_namespace), Quoted(request.pod_name));
}

std::string_view WordOf(ContainerType type) {
  switch (type) {
    case ContainerType::kInit:
      return "init";
    case ContainerType::kMain:
      return "main";
    case ContainerType::kSidecar:
      return "sidecar";
    case ContainerType::kEphemeral:
      break;
  }
  return "ephemeral";
}

}  // namespace qrm::rules
