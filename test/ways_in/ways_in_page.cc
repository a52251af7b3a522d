// Rows begin with a name in backquotes; headings name the program.
#include "test/ways_in/ways_in_page.h"

#include <cctype>
#include <fstream>

namespace qrm::test {

std::vector<std::string> WaysInto(const std::string& program) {
  constexpr char kHeading[] = "## ";
  constexpr char kRow[] = "| `";
  std::ifstream page("docs/ways-in.md");
  std::vector<std::string> ways;
  bool of_program = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with(kHeading)) {
      of_program = line == kHeading + program;
    } else if (of_program && line.starts_with(kRow)) {
      const std::size_t begin = sizeof(kRow) - 1;
      ways.push_back(line.substr(begin, line.find('`', begin) - begin));
    } else if (line.starts_with("### ")) {
      of_program = false;
    }
  }
  return ways;
}

std::string TestNameOf(const std::string& way) {
  std::string name;
  bool upper = true;
  for (const char c : way) {
    if (c == '-') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name;
}

}  // namespace qrm::test
