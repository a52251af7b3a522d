// Parses a decimal number and its suffix in one conversion, so that it is rounded once.
#include "api/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"

namespace qrm {
namespace {

constexpr double kMost = 9223372036854775807.0;
constexpr double kLeast = 1e-9;
constexpr std::size_t kMaxLength = 64;
constexpr std::string_view kDigits = "0123456789";

struct Suffix {
  std::string_view text;
  std::string_view exponent;  // decimal
  int power_of_two = 0;
};

constexpr std::array<Suffix, 16> kSuffixes = {{{"", ""},
                                               {"n", "e-9"},
                                               {"u", "e-6"},
                                               {"m", "e-3"},
                                               {"k", "e3"},
                                               {"M", "e6"},
                                               {"G", "e9"},
                                               {"T", "e12"},
                                               {"P", "e15"},
                                               {"E", "e18"},
                                               {"Ki", "", 10},
                                               {"Mi", "", 20},
                                               {"Gi", "", 30},
                                               {"Ti", "", 40},
                                               {"Pi", "", 50},
                                               {"Ei", "", 60}}};

/// The length of "12", "1.5", "1." or ".5" at the beginning of `text`; 0 when there is no digit.
std::size_t NumberLength(std::string_view text) {
  const std::size_t whole = std::min(text.find_first_not_of(kDigits), text.size());
  if (whole == text.size() || text[whole] != '.') {
    return whole;
  }
  const std::size_t end = std::min(text.find_first_not_of(kDigits, whole + 1), text.size());
  return end == whole + 1 && whole == 0 ? 0 : end;
}

/// True for "e3", "E-3", "e+3".
bool IsExponent(std::string_view text) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) {
    return false;
  }
  const std::string_view digits = text.substr(text[1] == '+' || text[1] == '-' ? 2 : 1);
  return !digits.empty() && digits.find_first_not_of(kDigits) == std::string_view::npos;
}

double Convert(std::string text) {
  double value = 0;
  if (const auto plus = text.find('+'); plus != std::string::npos) {
    text.erase(plus, 1);  // from_chars takes no plus
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range) {
    return value;
  }
  const bool has_value =
      text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != std::string::npos;
  const bool tiny = text.find('-') != std::string::npos;
  return !has_value ? 0 : tiny ? kLeast : kMost;
}

std::optional<double> ValueOf(std::string_view number, std::string_view suffix) {
  if (IsExponent(suffix)) {
    return Convert(std::string(number) + std::string(suffix));
  }
  const auto found = std::find_if(kSuffixes.begin(), kSuffixes.end(),
                                  [&](const Suffix& known) { return known.text == suffix; });
  if (found == kSuffixes.end()) {
    return std::nullopt;
  }
  // A power of two moves the point of the double and rounds nothing.
  return std::ldexp(Convert(std::string(number) + std::string(found->exponent)),
                    found->power_of_two);
}

}  // namespace

StatusOr<double> ParseQuantity(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  const bool is_signed = negative || (!text.empty() && text.front() == '+');
  const std::string_view rest = text.substr(is_signed ? 1 : 0);
  const std::size_t length = NumberLength(rest);
  std::optional<double> value;
  if (length > 0 && rest.size() <= kMaxLength) {
    value = ValueOf(rest.substr(0, length), rest.substr(length));
  }
  if (!value.has_value() || (negative && *value > 0)) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "cannot read quantity '{}': {}; write one such as 100m, 1.5Gi or 1e3", Quoted(text),
        value.has_value() ? "it is below zero" : "it is not a number with a known suffix");
  }
  return *value > 0 ? std::clamp(*value, kLeast, kMost) : 0.0;
}

}  // namespace qrm
