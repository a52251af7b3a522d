// Parses numbers from text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace qrm {

/// The number that the whole of `text` is, an integer also in another base than 10 (without prefix
/// such as 0x); nothing for any other text and for a number too large.
/// Cost: O(length). Source: std::from_chars, which knows no locale.
template <typename Number, typename... Base>
std::optional<Number> ParseNumber(std::string_view text, Base... base) {
  Number number{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, number, base...);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace qrm
