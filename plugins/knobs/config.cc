// Reads values in the form that the knob's table gives.
#include "plugins/knobs/config.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "api/base/config_key.h"
#include "api/base/errorf.h"
#include "api/base/number.h"
#include "plugins/cgroup/named_classes.h"

namespace qrm::knobs {
namespace {

constexpr std::string_view kMax = "max";
constexpr int kMostRealtimePriority = 99;

Status Wrong(const std::string& what) {
  return Errorf(StatusCode::kInvalidArgument, "write {}", what);
}

StatusOr<std::string> ShownNumber(const Knob& knob, const std::string& text) {
  const std::optional<int64_t> number = ParseNumber<int64_t>(text);
  if (!number.has_value() || *number < knob.least || *number > knob.most) {
    return Wrong(fmt::format("a whole number from {} to {}", knob.least, knob.most));
  }
  return std::to_string(*number);
}

StatusOr<std::string> ShownBytes(const Knob& knob, const std::string& text, uint64_t page) {
  const bool has_max = knob.neutral == kMax;
  if (has_max && text == kMax) {
    return text;
  }
  const StatusOr<uint64_t> bytes = config::ParseBytes(text);
  if (!bytes.ok() || *bytes > static_cast<uint64_t>(knob.most)) {
    return Wrong(
        fmt::format("a quantity up to {}, such as 512Mi{}", knob.most, has_max ? ", or max" : ""));
  }
  return std::to_string(*bytes / page * page);
}

StatusOr<std::string> ShownPercent(const std::string& text) {
  constexpr double kAll = 100;
  const std::optional<double> percent =
      text == kMax ? std::optional(kAll) : ParseNumber<double>(text);
  if (!percent.has_value() || !(*percent >= 0) || *percent > kAll) {
    return Wrong("a percentage from 0 to 100, such as 12.5, or max");
  }
  return *percent == kAll ? std::string(kMax) : fmt::format("{:.2f}", *percent);
}

StatusOr<std::string> ShownPolicy(const std::string& text) {
  if (text == "other" || text == "batch" || text == "idle") {
    return text;
  }
  for (const std::string_view name : {"fifo ", "rr "}) {
    const auto priority = text.starts_with(name)
                              ? ParseNumber<int>(std::string_view(text).substr(name.size()))
                              : std::nullopt;
    if (priority.has_value() && *priority >= 1 && *priority <= kMostRealtimePriority) {
      return fmt::format("{}{}", name, *priority);
    }
  }
  return Wrong("other, batch, idle, or fifo or rr with a priority from 1 to 99, such as 'fifo 10'");
}

StatusOr<KnobValues> ReadClass(const config::Section& section, const KnobType& type) {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  KnobValues values;
  for (const std::string& key : section.Keys()) {
    const auto knob = std::find_if(type.knobs.begin(), type.knobs.end(),
                                   [&](const Knob& one) { return one.name == key; });
    if (knob == type.knobs.end()) {
      std::vector<std::string> names;
      names.reserve(type.knobs.size());
      for (const Knob& one : type.knobs) {
        names.push_back(one.name);
      }
      return section.Error(key, "is not a known key",
                           "choose from " + config::EnumerateWords(names, "and"));
    }
    QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, ""));
    StatusOr<std::string> shown = ShownValue(*knob, text, page);
    if (!shown.ok() || values.contains(key)) {
      return section.Error(key, shown.ok() ? "is listed twice" : fmt::format("is '{}'", text),
                           shown.ok() ? "keep one of them" : MessageOf(shown.status()));
    }
    values[key] = *std::move(shown);
  }
  return values;
}

}  // namespace

StatusOr<std::string> ShownValue(const Knob& knob, const std::string& text, uint64_t page) {
  switch (knob.form) {
    case ValueForm::kBytes:
      return ShownBytes(knob, text, page);
    case ValueForm::kPercent:
      return ShownPercent(text);
    case ValueForm::kPolicy:
      return ShownPolicy(text);
    case ValueForm::kNumber:
      break;
  }
  return ShownNumber(knob, text);
}

StatusOr<std::map<std::string, KnobValues>> ParseConfig(const config::Section& file,
                                                        const KnobType& type) {
  return cgroup::ParseClasses<KnobValues>(
      file, [&type](const config::Section& section) { return ReadClass(section, type); });
}

}  // namespace qrm::knobs
