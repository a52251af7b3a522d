// Compares lines by their hashes: a line that is held back by mistake comes a minute later.
#include "api/base/repeated_lines.h"

#include <functional>
#include <utility>

namespace qrm {

std::string WithoutNumbers(std::string_view line) {
  std::string text;
  bool in_number = false;
  for (const char c : line) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) {
      text += c;
    } else if (!in_number) {
      text += 'N';
    }
    in_number = is_digit;
  }
  return text;
}

std::optional<uint64_t> RepeatedLines::Take(std::string_view line,
                                            std::chrono::steady_clock::time_point now) {
  const std::size_t hash = std::hash<std::string_view>()(line);
  const auto known = lines_.find(hash);
  if (known != lines_.end()) {
    if (now - known->second.written < kPeriod) {
      ++known->second.held_back;
      return std::nullopt;
    }
    known->second.written = now;
    return std::exchange(known->second.held_back, 0);
  }
  if (lines_.size() >= most_lines_) {
    ForgetOld(now);
  }
  if (lines_.size() >= most_lines_) {
    return std::nullopt;
  }
  lines_.emplace(hash, Line{.written = now});
  return 0;
}

void RepeatedLines::ForgetOld(std::chrono::steady_clock::time_point now) {
  std::erase_if(lines_, [now](const auto& entry) { return now - entry.second.written >= kPeriod; });
}

}  // namespace qrm
