// qrm-scheduler: the cluster's side of qrm.
#include <iostream>
#include <string>
#include <vector>

#include "scheduler/extender/serve_command.h"
#include "scheduler/simulate/simulate_command.h"

namespace {

constexpr char kUsage[] =
    "usage: qrm-scheduler COMMAND [ARGUMENT...]\n\n"
    "commands:\n"
    "  serve            answers kube-scheduler as its extender\n"
    "  simulate TRACE   plays nodes and pods through the cache and filters, without an API "
    "server\n\n"
    "qrm-scheduler COMMAND --help describes it; qrm-scheduler --version prints the version.\n";

int Run(const std::vector<std::string>& args) {
  const std::string command = args.empty() ? "" : args.front();
  if (command == "serve") {
    return qrm::scheduler::RunServe({args.begin() + 1, args.end()}, std::cout, std::cerr);
  }
  if (command == "simulate") {
    return qrm::scheduler::RunSimulate({args.begin() + 1, args.end()}, std::cout, std::cerr);
  }
  if (command == "--help" || command == "-h") {
    std::cout << kUsage;
    return 0;
  }
  if (command == "--version") {
    std::cout << "qrm-scheduler " QRM_VERSION "\n";
    return 0;
  }
  std::cerr << "qrm-scheduler: "
            << (command.empty() ? "no command" : "no command '" + command + "'")
            << "; try: qrm-scheduler --help\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  return Run({argv + 1, argv + argc});
}
