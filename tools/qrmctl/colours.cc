// Marks streams by a word of their own, which they hand on with their format.
#include "tools/qrmctl/colours.h"

#include <algorithm>
#include <iterator>

#include <fmt/color.h>
#include <fmt/format.h>

namespace qrm::manager::cli {
namespace {

int Mark() {
  static const int mark = std::ios_base::xalloc();
  return mark;
}

struct State {
  std::string_view word;
  fmt::terminal_color colour;
};
constexpr State kStates[] = {
    {"yes", fmt::terminal_color::green},      {"live", fmt::terminal_color::green},
    {"admitted", fmt::terminal_color::green}, {"yes, degraded", fmt::terminal_color::yellow},
    {"suspect", fmt::terminal_color::yellow}, {"skipped", fmt::terminal_color::yellow},
    {"no", fmt::terminal_color::red},         {"away", fmt::terminal_color::red},
    {"rejected", fmt::terminal_color::red},   {"not connected", fmt::terminal_color::red},
    {"ok", fmt::terminal_color::green},       {"degraded", fmt::terminal_color::yellow},
    {"failing", fmt::terminal_color::red},
};

}  // namespace

void UseColours(std::ostream& out) {
  out.iword(Mark()) = 1;
}

// iword(3) creates a missing word, which does not change the stream's behaviour.
bool HasColours(const std::ostream& out) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the standard library has no other look.
  return const_cast<std::ostream&>(out).iword(Mark()) == 1;
}

std::string Bold(std::string_view text) {
  return fmt::format(fmt::emphasis::bold, "{}", text);
}

std::string InItsColour(const std::string& state) {
  const auto* const found = std::find_if(std::begin(kStates), std::end(kStates),
                                         [&](const State& each) { return each.word == state; });
  return found == std::end(kStates) ? state : fmt::format(fmt::fg(found->colour), "{}", state);
}

}  // namespace qrm::manager::cli
