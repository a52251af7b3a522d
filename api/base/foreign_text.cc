// Walks UTF-8 character by character.
#include "api/base/foreign_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include <fmt/format.h>

namespace qrm {
namespace {

bool Continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Whether a character may begin with these two bytes: it has no shorter form, is not a surrogate
/// and is within Unicode. Source: RFC 3629, section 4.
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

/// One character of a text, or a byte that is none.
struct Piece {
  std::string_view bytes;
  std::optional<char32_t> character;
};

Piece FirstOf(std::string_view text) {
  const std::size_t length = CharacterLength(text);
  if (length == 0) {
    return {.bytes = text.substr(0, 1)};
  }
  constexpr char32_t kMarks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};  // what a first byte says, by length
  char32_t character = static_cast<unsigned char>(text.front()) & kMarks[length];
  for (const char c : text.substr(1, length - 1)) {
    character = character << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  }
  return {.bytes = text.substr(0, length), .character = character};
}

/// C0, DEL and C1: some terminals obey the last ones, too.
bool IsControl(char32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0);
}

struct Range {
  char32_t first;
  char32_t last;
};

/// Characters without a shape of their own: they turn the direction of what follows, join it, break
/// its line or cannot be seen, so that a name reads as another one.
/// Source: Unicode 15.0, DerivedGeneralCategory.txt, categories Cf, Zl and Zp.
constexpr Range kFormats[] = {
    {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
    {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x180e, 0x180e},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x2064},   {0x2066, 0x206f},
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
    {0xe0020, 0xe007f},
};

bool IsFormat(char32_t character) {
  return std::any_of(std::begin(kFormats), std::end(kFormats), [character](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

void AppendBytes(std::string_view bytes, std::string& escaped) {
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

/// As JSON has it: beyond 16 bits as two halves. Source: RFC 8259, 7.
void AppendCode(char32_t character, std::string& escaped) {
  const auto code = static_cast<uint32_t>(character);
  if (code < 0x10000) {
    escaped += fmt::format("\\u{:04x}", code);
  } else {
    escaped += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10U),
                           0xdc00 + ((code - 0x10000) & 0x3ffU));
  }
}

/// `text` with each piece as `append` writes it; printable ASCII stays.
template <typename Append>
std::string Rewritten(std::string_view text, Append append) {
  std::string rewritten;
  rewritten.reserve(text.size());
  while (!text.empty()) {
    const auto special =
        std::find_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; });
    rewritten.append(text.begin(), special);
    text.remove_prefix(static_cast<std::size_t>(special - text.begin()));
    if (!text.empty()) {
      const Piece piece = FirstOf(text);
      append(piece, rewritten);
      text.remove_prefix(piece.bytes.size());
    }
  }
  return rewritten;
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
  return Rewritten(text, [](const Piece& piece, std::string& escaped) {
    if (!piece.character.has_value() || IsControl(*piece.character)) {
      AppendBytes(piece.bytes, escaped);
    } else if (IsFormat(*piece.character)) {
      AppendCode(*piece.character, escaped);
    } else {
      escaped += piece.bytes;
    }
  });
}

std::string EscapedJson(std::string_view document) {
  return Rewritten(document, [](const Piece& piece, std::string& escaped) {
    const char32_t character = piece.character.value_or(U'?');
    if ((IsControl(character) && character != U'\n') || IsFormat(character)) {
      AppendCode(character, escaped);
    } else {
      escaped += piece.bytes;
    }
  });
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
