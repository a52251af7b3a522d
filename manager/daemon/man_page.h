// qrmd's flags besides the keys, and pages for man(1).
#pragma once

#include <string>
#include <string_view>

namespace qrm::manager {

struct ProgramFlag {
  std::string_view flag;
  std::string_view help;
};

inline constexpr ProgramFlag kProgramFlags[] = {
    {"--config FILE", "YAML file with the keys below"},
    {"--simulate", "allow another machine than this one (key machine), to try it"},
    {"--check-config", "report errors in the configuration, and exit"},
    {"--print-config-reference", "print all keys as a page in Markdown, and exit"},
    {"--print-man-page", "print the manual page, qrmd(8), and exit"},
    {"--version", "print the version, and exit"},
    {"--help", "print this help, and exit"},
};

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

/// qrmd(8), with every flag and every key. Source: man-pages(7).
std::string ManPage(std::string_view version);

}  // namespace qrm::manager
