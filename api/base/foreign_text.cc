// Walks UTF-8 character by character.
#include "api/base/foreign_text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace qrm {
namespace {

bool Continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Whether a character may begin with these two bytes: it has no shorter form, is no surrogate and
/// stands within Unicode. Source: RFC 3629, section 4.
bool MayFollow(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second < 0xa0;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second < 0x90;
    default:
      return true;
  }
}

/// The bytes of the character that `text` begins with; 0 when it begins with none.
/// Source: RFC 3629.
std::size_t CharacterLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length > text.size() ||
      (length > 1 && !MayFollow(first, static_cast<unsigned char>(text[1])))) {
    return 0;
  }
  return std::all_of(text.begin() + 1,
                     text.begin() + static_cast<std::ptrdiff_t>(length != 0 ? length : 1),
                     Continues)
             ? length
             : 0;
}

/// C0, DEL and, in UTF-8, C1: some terminals obey the last ones, too.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  return first < 0x20 || first == 0x7f ||
         (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

void AppendEscaped(std::string_view bytes, std::string& escaped) {
  for (const char c : bytes) {
    switch (c) {
      case '\n':
        escaped += "\\n";
        break;
      case '\t':
        escaped += "\\t";
        break;
      case '\r':
        escaped += "\\r";
        break;
      default:
        escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || IsControl(character)) {
      AppendEscaped(character, escaped);
    } else {
      escaped += character;
    }
    text.remove_prefix(character.size());
  }
  return escaped;
}

std::string Cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) {
    return std::string(text);
  }
  constexpr std::size_t kLongestCharacter = 4;
  std::size_t length = most;
  while (length > 0 && most - length < kLongestCharacter && Continues(text[length])) {
    --length;
  }
  return fmt::format("{}... ({} bytes)", text.substr(0, length), text.size());
}

std::string Quoted(std::string_view text) {
  return Escaped(Cut(text, kMostForeignBytes));
}

}  // namespace qrm
