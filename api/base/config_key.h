// One option as an operator writes it, and the makers of the usual kinds.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/status.h"

namespace qrm::config {

class Section;

/// How a value is written.
enum class KeyShape { kScalar, kList, kMapping };

/// A key of the configuration file, bound to the variable of its value. The owner of the options
/// lists their keys beside them; the variable's value before it is read is the key's default.
///
/// Threads: one at a time, and no longer than the variable lives.
struct ConfigKey {
  std::string name;
  KeyShape shape = KeyShape::kScalar;
  std::string range;  ///< what values it takes
  std::string help;
  /// Reads the key, which the section has, into its variable. Errors: kInvalidArgument with file,
  /// line, key, value and what is allowed.
  std::function<Status(const Section&, const std::string& name)> read;
  std::function<std::string()> show;  ///< the value in its place, as one writes it
};

/// Each takes the place of the value, which outlives the key.
ConfigKey TextKey(std::string name, std::string& place, std::string range, std::string help);

/// A path that starts with a slash: sockets and directories are found from any working directory.
ConfigKey PathKey(std::string name, std::string& place, std::string help);

ConfigKey SwitchKey(std::string name, bool& place, std::string help);

struct DurationRange {
  std::string_view least;  ///< as in the file: "500ms", "3s", "10m"
  std::string_view most;
};
/// A whole number with a unit.
ConfigKey DurationKey(std::string name, std::chrono::milliseconds& place, DurationRange range,
                      std::string help);

struct NumberRange {
  int least = 0;
  int most = 0;
  std::string remedy;  ///< what to write instead: "write 1 for ..."
};
ConfigKey NumberKey(std::string name, int& place, NumberRange range, std::string help);

/// A list, in the order of the file.
ConfigKey WordsKey(std::string name, std::vector<std::string>& place, std::string range,
                   std::string help);

/// One of several words, whatever they stand for.
struct WordChoice {
  std::string what;  ///< what they are words for: "policy"
  std::vector<std::string> words;
  std::function<bool(const std::string& word)> set;    ///< false when it is none of them
  std::function<bool(const std::string& word)> holds;  ///< whether it is the value now
};
ConfigKey WordKey(std::string name, WordChoice choice, std::string help);

/// The words of an enumeration, as `parse` reads them.
template <typename Enum>
struct Choice {
  std::string what;
  std::vector<std::string> words;
  StatusOr<Enum> (*parse)(std::string_view word);
};
template <typename Enum>
ConfigKey ChoiceKey(std::string name, Enum& place, Choice<Enum> choice, std::string help) {
  const auto parse = choice.parse;
  return WordKey(std::move(name),
                 {.what = std::move(choice.what),
                  .words = std::move(choice.words),
                  .set =
                      [&place, parse](const std::string& word) {
                        const StatusOr<Enum> value = parse(word);
                        place = value.value_or(place);
                        return value.ok();
                      },
                  .holds =
                      [&place, parse](const std::string& word) {
                        const StatusOr<Enum> value = parse(word);
                        return value.ok() && *value == place;
                      }},
                 std::move(help));
}

/// "3s", "500ms", "1m", and several of them as Go writes them, "1h0m0s"; nothing for any other
/// text.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

/// `text` as a scalar of YAML: in quotes where it would mean something else without.
std::string PlainOrQuoted(const std::string& text);
/// "[a, b]", as a list is written on one line; `items` are YAML.
std::string ListText(const std::vector<std::string>& items);
/// The same with words, each as PlainOrQuoted.
std::string WordsText(std::vector<std::string> words);
/// "a, b or c", as a sentence offers them; `conjunction` stands before the last.
std::string EnumerateWords(const std::vector<std::string>& words, std::string_view conjunction);

}  // namespace qrm::config
