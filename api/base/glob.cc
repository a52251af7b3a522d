// Matches from the left, and returns to the last star only.
#include "api/base/glob.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace qrm {

// On a mismatch after a star, the star takes one more character, and the rest is tried again. Only
// the last star needs this, so the cost is at most glob times text.
bool MatchesGlob(std::string_view glob, std::string_view text, Wildcards wildcards) {
  const bool has_mark = wildcards == Wildcards::kStarAndQuestionMark;
  std::size_t at = 0;
  std::size_t in_text = 0;
  std::optional<std::pair<std::size_t, std::size_t>> star;  // after it; end of its text
  while (in_text < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = {++at, in_text};
    } else if (at < glob.size() && ((has_mark && glob[at] == '?') || glob[at] == text[in_text])) {
      ++at;
      ++in_text;
    } else if (star.has_value()) {
      at = star->first;
      in_text = ++star->second;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string_view::npos;
}

bool MatchesAnyGlob(const std::vector<std::string>& globs, std::string_view text,
                    Wildcards wildcards) {
  return std::ranges::any_of(
      globs, [&](const std::string& glob) { return MatchesGlob(glob, text, wildcards); });
}

}  // namespace qrm
