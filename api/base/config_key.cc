// Readers and writers of the usual kinds of value.
#include "api/base/config_key.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/check.h"
#include "api/base/number.h"
#include "api/base/section.h"

namespace qrm::config {
namespace {

using std::chrono::milliseconds;

std::string DurationText(milliseconds duration) {
  const auto count = duration.count();
  if (count != 0 && count % 60'000 == 0) {
    return fmt::format("{}m", count / 60'000);
  }
  return count % 1000 == 0 ? fmt::format("{}s", count / 1000) : fmt::format("{}ms", count);
}

}  // namespace

std::optional<milliseconds> ParseDuration(std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t factor;
  };
  static constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr int64_t kMost = int64_t{1} << 30;
  if (text.empty()) {
    return std::nullopt;
  }
  milliseconds duration{0};
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = ParseNumber<int64_t>(text.substr(0, digits));
    text.remove_prefix(digits);
    const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                          [&](const Unit& each) { return each.name == name; });
    if (!number.has_value() || *number >= kMost || unit == std::end(kUnits)) {
      return std::nullopt;
    }
    text.remove_prefix(name.size());
    duration += milliseconds(*number * unit->factor);
  }
  return duration;
}

ConfigKey TextKey(std::string name, std::string& place, std::string range, std::string help) {
  return {.name = std::move(name),
          .range = std::move(range),
          .help = std::move(help),
          .read = [&place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(place, section.Text(key, place));
            return OkStatus();
          },
          .show = [&place] { return PlainOrQuoted(place); }};
}

ConfigKey PathKey(std::string name, std::string& place, std::string help) {
  ConfigKey path = TextKey(std::move(name), place, "absolute path", std::move(help));
  path.read = [&place, read = path.read](const Section& section, const std::string& key) -> Status {
    QRM_RETURN_IF_ERROR(read(section, key));
    if (!place.starts_with('/')) {
      return section.Error(key, fmt::format("is '{}', which is not an absolute path", place),
                           "write one that starts with /");
    }
    return OkStatus();
  };
  return path;
}

ConfigKey SwitchKey(std::string name, bool& place, std::string help) {
  return {.name = std::move(name),
          .range = "true, false",
          .help = std::move(help),
          .read = [&place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(place, section.Flag(key, place));
            return OkStatus();
          },
          .show = [&place] { return std::string(place ? "true" : "false"); }};
}

ConfigKey DurationKey(std::string name, milliseconds& place, DurationRange range,
                      std::string help) {
  const auto least = ParseDuration(range.least);
  const auto most = ParseDuration(range.most);
  QRM_CHECK(least.has_value() && most.has_value());
  const std::string text = fmt::format("{} to {}", range.least, range.most);
  return {.name = std::move(name),
          .range = text,
          .help = std::move(help),
          .read = [=, &place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::string value, section.Text(key, ""));
            const std::optional<milliseconds> duration = ParseDuration(value);
            if (!duration.has_value() || *duration < *least || *duration > *most) {
              return section.Error(
                  key, fmt::format("is '{}', which is not a duration from {}", value, text),
                  "write one such as 500ms, 3s or 1m");
            }
            place = *duration;
            return OkStatus();
          },
          .show = [&place] { return DurationText(place); }};
}

ConfigKey NumberKey(std::string name, int& place, NumberRange range, std::string help) {
  const std::string text = fmt::format("{} to {}", range.least, range.most);
  return {.name = std::move(name),
          .range = text,
          .help = std::move(help),
          .read = [=, &place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(const std::string value, section.Text(key, ""));
            const std::optional<int> number = ParseNumber<int>(value);
            if (!number.has_value() || *number < range.least || *number > range.most) {
              return section.Error(
                  key, fmt::format("is '{}', which is not a number from {}", value, text),
                  range.remedy);
            }
            place = *number;
            return OkStatus();
          },
          .show = [&place] { return std::to_string(place); }};
}

ConfigKey WordsKey(std::string name, std::vector<std::string>& place, std::string range,
                   std::string help) {
  return {.name = std::move(name),
          .shape = KeyShape::kList,
          .range = std::move(range),
          .help = std::move(help),
          .read = [&place](const Section& section, const std::string& key) -> Status {
            QRM_ASSIGN_OR_RETURN(place, section.Words(key));
            return OkStatus();
          },
          .show = [&place] { return WordsText(place); }};
}

ConfigKey WordKey(std::string name, WordChoice choice, std::string help) {
  return {
      .name = std::move(name),
      .range = fmt::format("{}", fmt::join(choice.words, ", ")),
      .help = std::move(help),
      .read = [choice](const Section& section, const std::string& key) -> Status {
        QRM_ASSIGN_OR_RETURN(const std::string word, section.Text(key, ""));
        return choice.set(word)
                   ? OkStatus()
                   : section.Error(key, fmt::format("is '{}', which is no {}", word, choice.what),
                                   "write " + EnumerateWords(choice.words, "or"));
      },
      .show =
          [choice] {
            const auto now = std::find_if(choice.words.begin(), choice.words.end(), choice.holds);
            QRM_CHECK(now != choice.words.end());
            return *now;
          }};
}

std::string PlainOrQuoted(const std::string& text) {
  const bool plain = !text.empty() && text.front() != '-' && text.back() != ':' &&
                     text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._/+:-") == std::string::npos;
  if (plain) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter == '"' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  }
  return quoted + "\"";
}

std::string ListText(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string WordsText(std::vector<std::string> words) {
  std::transform(words.begin(), words.end(), words.begin(), PlainOrQuoted);
  return ListText(words);
}

std::string EnumerateWords(const std::vector<std::string>& words, std::string_view conjunction) {
  if (words.size() < 2) {
    return words.empty() ? std::string() : words.front();
  }
  return fmt::format("{} {} {}", fmt::join(words.begin(), words.end() - 1, ", "), conjunction,
                     words.back());
}

}  // namespace qrm::config
