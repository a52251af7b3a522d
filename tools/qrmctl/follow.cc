// Renders into memory first, to print only what is news.
#include "tools/qrmctl/follow.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace qrm::manager::cli {
namespace {

/// What clears a terminal and goes to its begin, or the line between two lists.
const char* Separator(const std::ostream& out) {
  const bool terminal = &out == &std::cout && ::isatty(STDOUT_FILENO) == 1;
  return terminal ? "\x1b[2J\x1b[H" : "---\n";
}

}  // namespace

bool WaitTwoSeconds(std::ostream& out) {
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return out.good();
}

bool IsWatched(const Args& args) {
  return std::any_of(args.begin(), args.end(),
                     [](const std::string& arg) { return arg == "-w" || arg == "--watch"; });
}

int Watch(Run run, const Args& args, std::ostream& out, std::ostream& err, const Wait& wait) {
  std::string shown;
  do {
    std::ostringstream text;
    text.copyfmt(out);  // and its colours
    if (const int code = run(args, text, err); code != kDone) {
      out << text.str();
      return code;
    }
    if (text.str() != shown) {
      out << (shown.empty() && &out != &std::cout ? "" : Separator(out)) << text.str()
          << std::flush;
      shown = text.str();
    }
  } while (wait(out));
  return kDone;
}

}  // namespace qrm::manager::cli
