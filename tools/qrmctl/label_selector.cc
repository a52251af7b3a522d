// Reads requirements by a pattern for each of their forms.
#include "tools/qrmctl/label_selector.h"

#include <algorithm>
#include <regex>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/text.h"

namespace qrm::manager::cli {
namespace {

/// The parts between commas outside parentheses.
std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::string> Values(const std::string& list) {
  std::vector<std::string> values;
  for (const std::string& value : SplitAtCommas(list)) {
    values.emplace_back(Trimmed(value));
  }
  return values;
}

}  // namespace

StatusOr<LabelSelector> LabelSelector::Parse(const std::string& text) {
  LabelSelector selector;
  if (Trimmed(text).empty()) {
    return selector;
  }
  for (const std::string& part : SplitAtCommas(text)) {
    QRM_ASSIGN_OR_RETURN(Requirement requirement, ParseOne(std::string(Trimmed(part))));
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

StatusOr<LabelSelector::Requirement> LabelSelector::ParseOne(const std::string& text) {
  static const std::regex exists(R"((!?)\s*([\w./-]+))");
  static const std::regex equals(R"(([\w./-]+)\s*(==?|!=)\s*([\w.-]*))");
  static const std::regex in_set(R"(([\w./-]+)\s+(in|notin)\s*\(([\w., -]*)\))");
  std::smatch found;
  if (std::regex_match(text, found, exists)) {
    return Requirement{.key = found[2], .is_any = true, .negated = found[1].length() > 0};
  }
  if (std::regex_match(text, found, equals)) {
    return Requirement{.key = found[1], .values = {found[3]}, .negated = found[2] == "!="};
  }
  if (std::regex_match(text, found, in_set)) {
    return Requirement{.key = found[1], .values = Values(found[3]), .negated = found[2] == "notin"};
  }
  return Errorf(StatusCode::kInvalidArgument,
                "\"{}\" selects no labels; write KEY=VALUE, KEY!=VALUE, \"KEY in (A,B)\", \"KEY "
                "notin (A,B)\", KEY or !KEY, with commas between them",
                text);
}

bool LabelSelector::Matches(const StringMap& labels) const {
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& wanted) {
    const auto label = labels.find(wanted.key);
    const bool is_met = label != labels.end() &&
                        (wanted.is_any || std::find(wanted.values.begin(), wanted.values.end(),
                                                    label->second) != wanted.values.end());
    return is_met != wanted.negated;
  });
}

}  // namespace qrm::manager::cli
