// Globs of namespaces and names, in which only a star is special.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qrm {

/// Whether `text` is what `glob` describes; a star stands for any text, also for none.
bool MatchesGlob(std::string_view glob, std::string_view text);
/// Whether it is what any of `globs` describes.
bool MatchesAnyGlob(const std::vector<std::string>& globs, std::string_view text);

}  // namespace qrm
