// Escapes text for manual pages.
#pragma once

#include <string>
#include <string_view>

namespace qrm::manager {

/// `text`, escaped so that roff shows it literally. Source: groff_man(7).
inline std::string Roff(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    if (begins_line && (text[i] == '.' || text[i] == '\'')) {
      safe += "\\&";
    }
    if (text[i] == '\\') {
      safe += "\\e";
    } else if (text[i] == '-') {
      safe += "\\-";
    } else {
      safe += text[i];
    }
  }
  return safe;
}

}  // namespace qrm::manager
