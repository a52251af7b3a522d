// Colours on a terminal.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace qrm::manager::cli {

/// What is printed to `out` from now on may have colours, also where another stream takes over its
/// format.
void UseColours(std::ostream& out);
bool HasColours(const std::ostream& out);

/// `text` in bold.
std::string Bold(std::string_view text);

/// A state such as "live" or "rejected" in green, yellow or red; any other text as it is.
std::string InItsColour(const std::string& state);

}  // namespace qrm::manager::cli
