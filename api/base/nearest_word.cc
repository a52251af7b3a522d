// Levenshtein's distance, one row at a time.
#include "api/base/nearest_word.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace qrm {
namespace {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestWord(std::string_view typed, const std::vector<std::string>& words) {
  const auto nearest =
      std::min_element(words.begin(), words.end(), [&](const std::string& a, const std::string& b) {
        return EditDistance(typed, a) < EditDistance(typed, b);
      });
  const bool is_near =
      nearest != words.end() && EditDistance(typed, *nearest) <= 2 + typed.size() / 4;
  return is_near ? *nearest : std::string();
}

}  // namespace qrm
