// Finds the command, or says which there are.
#include "scheduler/extender/scheduler_main.h"

#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "scheduler/extender/serve_command.h"

namespace qrm::scheduler {
namespace {

constexpr int kNoCommand = 2;
constexpr char kServe[] = "serve";

void PrintUsage(const SchedulerProgram& program) {
  std::cout << fmt::format("usage: {} COMMAND [ARGUMENT...]\n\ncommands:\n  {:<16} {}\n",
                           program.name, kServe, "answers kube-scheduler as its extender");
  for (const auto& [name, command] : program.commands) {
    std::cout << fmt::format("  {:<16} {}\n", name, command.help);
  }
  std::cout << fmt::format("\n{0} COMMAND --help describes it; {0} --version prints the version.\n",
                           program.name);
}

}  // namespace

int SchedulerMain(const SchedulerProgram& program, int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string command = words.empty() ? "" : words.front();
  if (command == "--help" || command == "-h") {
    PrintUsage(program);
    return 0;
  }
  if (command == "--version") {
    std::cout << program.name << ' ' << program.version << '\n';
    return 0;
  }
  const std::vector<std::string> args(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (command == kServe) {
    return RunServe(program, args, std::cout, std::cerr);
  }
  if (const auto more = program.commands.find(command); more != program.commands.end()) {
    return more->second.run(args, std::cout, std::cerr);
  }
  std::cerr << fmt::format("{0}: {1}; try: {0} --help\n", program.name,
                           command.empty() ? "no command" : "no command '" + command + "'");
  return kNoCommand;
}

int SchedulerMain(const HandleFactories& factories, int argc, char** argv) {
  return SchedulerMain({.name = std::filesystem::path(argv[0]).filename().string(),
                        .version = QRM_VERSION,
                        .factories = factories},
                       argc, argv);
}

}  // namespace qrm::scheduler
