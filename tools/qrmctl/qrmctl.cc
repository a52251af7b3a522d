// Finds the command that was typed, and helps with all of them.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/base/nearest_word.h"
#include "tools/qrmctl/command.h"
#include "tools/qrmctl/follow.h"

namespace qrm::manager::cli {
namespace {

constexpr char kCluster[] = "--cluster";

void PrintHelp(std::ostream& out) {
  out << "Shows and controls the QoS resource manager of this node.\n\n"
         "Usage: qrmctl COMMAND [ARGUMENTS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    out << fmt::format("  {:<12}{}\n", command.name, command.summary);
  }
  out << "\nFor the cluster:\n";
  for (const Command& command : kClusterCommands) {
    out << fmt::format("  {} {:<12}{}\n", kCluster, command.name, command.summary);
  }
  out << "\nqrmctl COMMAND --help describes each command. Exit codes: 0 done, 1 failed, 2 "
         "misused.\n";
}

/// Runs `command`, by the verb that `args` begin with if it has verbs.
int RunCommand(const Command& command, const Args& args, std::ostream& out, std::ostream& err) {
  const std::string word = args.empty() ? "" : args[0];
  const auto verb = std::find_if(command.verbs.begin(), command.verbs.end(),
                                 [&](const Verb& each) { return each.name == word; });
  const bool has_verb = verb != command.verbs.end();
  const bool help = std::any_of(args.begin(), args.end(), [](const std::string& arg) {
    return arg == "--help" || arg == "-h";
  });
  if (const Run run = has_verb ? verb->run : command.run; run != nullptr) {
    const Args rest(args.begin() + (has_verb ? 1 : 0), args.end());
    return IsWatched(rest) && !help ? Watch(run, rest, out, err, WaitTwoSeconds)
                                    : run(rest, out, err);
  }
  if (word == "--help" || word == "-h") {
    out << command.help;
    return kDone;
  }
  err << fmt::format("qrmctl {}: {}; try: {}\n", command.name,
                     word.empty() ? "no verb given" : "there is no verb \"" + word + "\"",
                     command.examples);
  return kMisuse;
}

/// Runs the command of `commands` that `args` begin with; `before` was typed before it.
int RunOneOf(std::span<const Command> commands, const std::string& before, const Args& args,
             std::ostream& out, std::ostream& err) {
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& command) { return command.name == args[0]; });
  if (found != commands.end()) {
    return RunCommand(*found, {args.begin() + 1, args.end()}, out, err);
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
  }
  const std::string nearest = NearestWord(args[0], names);
  err << fmt::format(
      "qrmctl: there is no command \"{}{}\"; {}\n", before, args[0],
      nearest.empty() ? "try: qrmctl --help" : "did you mean " + before + nearest + "?");
  return kMisuse;
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
  if (args[0] != kCluster) {
    return RunOneOf(kCommands, "", args, out, err);
  }
  if (args.size() == 1) {
    err << "qrmctl: no command given after --cluster; try: qrmctl --cluster why POD\n";
    return kMisuse;
  }
  return RunOneOf(kClusterCommands, "--cluster ", {args.begin() + 1, args.end()}, out, err);
}

}  // namespace qrm::manager::cli
