// Globs of namespaces, names and other texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qrm {

/// What is special in a glob: a star stands for any text, also for none, `?` for any character.
enum class Wildcards { kStar, kStarAndQuestionMark };

/// Whether `text` is what `glob` describes.
bool MatchesGlob(std::string_view glob, std::string_view text,
                 Wildcards wildcards = Wildcards::kStar);
/// Whether it is what any of `globs` describes.
bool MatchesAnyGlob(const std::vector<std::string>& globs, std::string_view text,
                    Wildcards wildcards = Wildcards::kStar);

}  // namespace qrm
