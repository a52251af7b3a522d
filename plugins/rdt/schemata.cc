// Reads and writes resctrl's schemata lines.
#include "plugins/rdt/schemata.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/number.h"
#include "api/base/text.h"

namespace qrm::rdt {
namespace {

/// Bandwidth is decimal, masks are hexadecimal.
bool IsBandwidth(std::string_view resource) {
  return resource == "MB" || resource == "SMBA";
}

/// The text before the first `mark`; `rest` continues after it.
std::string_view Before(char mark, std::string_view& rest) {
  const std::size_t end = rest.find(mark);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

/// Parses `0=fffff;1=fffff`; nothing for other text.
std::optional<std::map<int, uint64_t>> ParseIds(std::string_view text, int base) {
  std::map<int, uint64_t> values;
  while (!text.empty()) {
    std::string_view value = Before(';', text);
    const auto id = ParseNumber<int>(Trimmed(Before('=', value)));
    const auto number = ParseNumber<uint64_t>(Trimmed(value), base);
    if (!id.has_value() || !number.has_value()) {
      return std::nullopt;
    }
    values.emplace(*id, *number);
  }
  return values;
}

}  // namespace

Schemata ParseSchemata(std::string_view text) {
  Schemata schemata;
  while (!text.empty()) {
    std::string_view values = Before('\n', text);
    const std::string name(Trimmed(Before(':', values)));
    if (auto ids = ParseIds(values, IsBandwidth(name) ? 10 : 16);
        ids.has_value() && !ids->empty()) {
      schemata.emplace(name, *std::move(ids));
    }
  }
  return schemata;
}

std::string ToString(const Schemata& schemata) {
  std::string text;
  for (const auto& [name, values] : schemata) {
    std::vector<std::string> parts;
    for (const auto& [id, value] : values) {
      parts.push_back(IsBandwidth(name) ? fmt::format("{}={}", id, value)
                                        : fmt::format("{}={:x}", id, value));
    }
    text += fmt::format("{}:{}\n", name, fmt::join(parts, ";"));
  }
  return text;
}

std::string OneLine(const Schemata& schemata) {
  std::string text = ToString(schemata);
  std::ranges::replace(text, '\n', ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace qrm::rdt
