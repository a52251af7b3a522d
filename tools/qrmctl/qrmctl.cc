// Finds the command that was typed, and helps with all of them.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/base/nearest_word.h"
#include "tools/qrmctl/command.h"

namespace qrm::manager::cli {
namespace {

void PrintHelp(std::ostream& out) {
  out << "Shows and steers the QoS resource manager of this node.\n\n"
         "Usage: qrmctl COMMAND [ARGUMENTS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    out << fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  out << "\nqrmctl COMMAND --help tells more about each. Exit codes: 0 done, 1 failed, 2 "
         "misused.\n";
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
  }
  return names;
}

}  // namespace

int RunQrmctl(const Args& args, std::ostream& out, std::ostream& err) {
  if (args.empty()) {
    err << "qrmctl: no command given; try: qrmctl status, or qrmctl --help\n";
    return kMisuse;
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    PrintHelp(out);
    return kDone;
  }
  if (args[0] == "--version" || args[0] == "version") {
    out << "qrmctl " QRM_VERSION "\n";
    return kDone;
  }
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(),
                                   [&](const Command& command) { return command.name == args[0]; });
  if (found == kCommands.end()) {
    const std::string nearest = NearestWord(args[0], CommandNames());
    err << fmt::format("qrmctl: there is no command \"{}\"; {}\n", args[0],
                       nearest.empty() ? "try: qrmctl --help" : "did you mean " + nearest + "?");
    return kMisuse;
  }
  return found->run({args.begin() + 1, args.end()}, out, err);
}

}  // namespace qrm::manager::cli
