// Keeps what happens again and again from filling the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace qrm {

/// The line with N in place of each number: lines that differ only in numbers are equal.
std::string WithoutNumbers(std::string_view line);

/// Decides which of equal lines are written: the first, and one a minute while they continue.
/// Knows the lines of the last minute, a limited number of them.
///
/// Threads: one at a time.
class RepeatedLines {
 public:
  static constexpr std::chrono::minutes kPeriod{1};
  /// More different lines in a minute are useless to readers: the rest is not written.
  static constexpr std::size_t kMostLines = 1000;

  explicit RepeatedLines(std::size_t most_lines = kMostLines) : most_lines_(most_lines) {}

  /// How many equal ones were held back before this one, which is to be written; absent: it is not.
  std::optional<uint64_t> Take(std::string_view line, std::chrono::steady_clock::time_point now);

 private:
  struct Line {
    std::chrono::steady_clock::time_point written;
    uint64_t held_back = 0;
  };

  void ForgetOld(std::chrono::steady_clock::time_point now);

  const std::size_t most_lines_;
  std::map<std::size_t, Line> lines_;  // by hash
};

}  // namespace qrm
