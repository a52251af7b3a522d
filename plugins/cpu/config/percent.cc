// Reads percentages of configuration files.
#include "plugins/cpu/config/percent.h"

#include <string>

#include <fmt/format.h>

#include "api/base/number.h"

namespace qrm::cpu {

StatusOr<int> ReadPercent(const config::Section& section, std::string_view key, int fallback,
                          int most) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, std::to_string(fallback)));
  const std::string_view digits =
      text.ends_with('%') ? std::string_view(text).substr(0, text.size() - 1) : text;
  const auto percent = ParseNumber<int>(digits);
  if (!percent.has_value() || *percent < 1 || *percent > most) {
    return section.Error(key, fmt::format("is '{}', which is not a percentage", text),
                         fmt::format("write one from 1% to {}%", most));
  }
  return *percent;
}

}  // namespace qrm::cpu
