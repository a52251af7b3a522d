// Writes numbers in short forms; the exact ones are in the json and yaml output.
#include "tools/qrmctl/text.h"

#include <array>
#include <ctime>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace qrm::manager::cli {
namespace {

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;

std::string WithoutTrailingZeros(std::string text) {
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
      text.pop_back();
    }
  }
  return text;
}

std::string TwoUnits(int64_t seconds, int64_t large, char large_letter, int64_t small,
                     char small_letter) {
  const int64_t rest = seconds % large / small;
  return rest == 0 ? fmt::format("{}{}", seconds / large, large_letter)
                   : fmt::format("{}{}{}{}", seconds / large, large_letter, rest, small_letter);
}

}  // namespace

std::string AgeText(double seconds) {
  constexpr double kMost = 1e15;  // beyond what an integer is sure to hold
  if (!(seconds >= 0 && seconds < kMost)) {
    return "never";
  }
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < kMinute) {
    return fmt::format("{}s", whole);
  }
  if (whole < kHour) {
    return TwoUnits(whole, kMinute, 'm', 1, 's');
  }
  return whole < kDay ? TwoUnits(whole, kHour, 'h', kMinute, 'm')
                      : TwoUnits(whole, kDay, 'd', kHour, 'h');
}

std::string BytesText(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kSuffixes = {"", "Ki", "Mi", "Gi", "Ti"};
  constexpr double kStep = 1024;
  auto amount = static_cast<double>(bytes);
  std::size_t step = 0;
  while (amount >= kStep && step + 1 < kSuffixes.size()) {
    amount /= kStep;
    ++step;
  }
  return WithoutTrailingZeros(fmt::format("{:.1f}", amount)) + std::string(kSuffixes[step]);
}

std::string AmountText(double amount) {
  return WithoutTrailingZeros(fmt::format("{:.3f}", amount));
}

std::string AmountOf(const std::string& resource, double amount) {
  constexpr double kMostBytes = 0x1p63;
  const bool is_bytes = (resource == "memory" || resource.rfind("hugepages-", 0) == 0) &&
                        amount >= 0 && amount < kMostBytes;
  return is_bytes ? BytesText(static_cast<uint64_t>(amount)) : AmountText(amount);
}

std::string CountText(uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string TimeText(int64_t unix_millis) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(unix_millis / 1000)));
}

}  // namespace qrm::manager::cli
