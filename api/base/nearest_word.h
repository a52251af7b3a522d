// Finds the word that was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qrm {

/// The one of `words` that `typed` was probably meant to be, by the number of letters to add, drop
/// or replace; empty when none is near. Cost: O(words · length²).
std::string NearestWord(std::string_view typed, const std::vector<std::string>& words);

}  // namespace qrm
