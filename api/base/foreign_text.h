// Makes text of others fit for messages, logs and terminals: bounded, and without characters that
// are obeyed instead of shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qrm {

/// The most bytes of foreign text in a message.
inline constexpr std::size_t kMostForeignBytes = 200;

/// `text` with control characters as `\n`, `\t`, `\r` or `\xNN`, and every byte that is not UTF-8
/// as `\xNN`: nothing in it ends a line or moves a terminal's cursor. Unicode's format characters,
/// such as U+202E that turns what follows it around, are `\uNNNN`, in two halves beyond 16 bits.
std::string Escaped(std::string_view text);

/// The JSON `document`, whose lines stay, with the characters in its strings that Escaped does not
/// leave either as `\uNNNN`: it means the same.
std::string EscapedJson(std::string_view document);

/// Whether `text` is UTF-8. Source: RFC 3629.
bool IsUtf8(std::string_view text);

/// The longest beginning of `text` that has up to `most` bytes and ends with a whole character,
/// with the length of what was cut: "abc... (250000 bytes)". Shorter text stays as it is.
std::string Cut(std::string_view text, std::size_t most);

/// Foreign `text` as a message quotes it: cut to kMostForeignBytes, then escaped.
std::string Quoted(std::string_view text);

}  // namespace qrm
