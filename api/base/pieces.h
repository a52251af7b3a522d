// Bytes that arrive in pieces, as a connection delivers a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qrm {

/// One after the other they are the whole.
using Pieces = std::vector<std::string_view>;

inline std::string Joined(const Pieces& pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) {
    size += piece.size();
  }
  std::string bytes;
  bytes.reserve(size);
  for (const std::string_view piece : pieces) {
    bytes += piece;
  }
  return bytes;
}

}  // namespace qrm
