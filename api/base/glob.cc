// Matches pieces between stars, from the left.
#include "api/base/glob.h"

#include <algorithm>

namespace qrm {

bool MatchesGlob(std::string_view glob, std::string_view text) {
  const std::size_t star = glob.find('*');
  if (star == std::string_view::npos) {
    return glob == text;
  }
  if (!text.starts_with(glob.substr(0, star))) {
    return false;
  }
  text.remove_prefix(star);
  glob.remove_prefix(star + 1);
  // Each further piece is taken where it first stands: what is left for later ones is longest then.
  for (std::size_t next = glob.find('*'); next != std::string_view::npos; next = glob.find('*')) {
    const std::size_t at = text.find(glob.substr(0, next));
    if (at == std::string_view::npos) {
      return false;
    }
    text.remove_prefix(at + next);
    glob.remove_prefix(next + 1);
  }
  return text.ends_with(glob);
}

bool MatchesAnyGlob(const std::vector<std::string>& globs, std::string_view text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, text); });
}

}  // namespace qrm
