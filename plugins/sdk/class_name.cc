// Checks names letter by letter.
#include "plugins/sdk/class_name.h"

#include <algorithm>
#include <cstddef>

namespace qrm::sdk {
namespace {

constexpr std::size_t kLongestName = 63;

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool IsClassName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace qrm::sdk
