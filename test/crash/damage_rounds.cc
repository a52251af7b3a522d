// Starts qrmd again and again on a damaged database, qrmd's or a plugin's: it is ready within two
// seconds, every file still exists, no container loses CPUs to another, and new containers with
// exclusive and with shared CPUs are admitted.
//   test_damage [--rounds=N] [--first=N] [--seed=N]
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <linux/capability.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "test/crash/damaged_node.h"
#include "test/crash/file_damage.h"

namespace qrm::test {
namespace {

struct Options {
  int rounds = 40;
  int first = 1;
  uint32_t seed = 1;
  std::string configs = "test/crash";
};

Status Run(const Options& options) {
  FileDamage damage(options.seed);
  DamagedNode inside(PluginsRun::kInside, options.configs, damage);
  DamagedNode processes(PluginsRun::kAsProcesses, options.configs, damage);
  QRM_RETURN_IF_ERROR(inside.Start());
  QRM_RETURN_IF_ERROR(processes.Start());
  std::map<std::string, int> done;
  for (int round = options.first; round <= options.rounds; ++round) {
    const StatusOr<std::string> held = round % 3 == 0   ? processes.DamagePlugin(round)
                                       : round % 3 == 1 ? inside.DamageCheckpoint(round)
                                                        : processes.DamageCheckpoint(round);
    if (!held.ok()) {
      std::cerr << (round % 3 == 1 ? inside : processes).LogEnd();
      return Annotate(held.status(), fmt::format("round {}", round));
    }
    ++done[*held];
  }
  std::cout << options.rounds - options.first + 1 << " starts on damaged databases:\n";
  for (const auto& [what, count] : done) {
    std::cout << fmt::format("  {:5} {}\n", count, what);
  }
  std::cout << fmt::format("the slowest was ready after {} ms\n",
                           std::max(inside.slowest(), processes.slowest()).count());
  return OkStatus();
}

/// root reads what it has no right to, unless this process's children cannot.
void GiveUpOverridingPermissions() {
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Damages databases and checks that qrmd starts all the same.");
  qrm::test::Options options;
  app.add_option("--rounds", options.rounds, "the last round");
  app.add_option("--first", options.first, "the first one, to see a later one fail sooner");
  app.add_option("--seed", options.seed, "what is damaged how");
  app.add_option("--configs", options.configs, "where the configurations are");
  CLI11_PARSE(app, argc, argv);
  qrm::test::GiveUpOverridingPermissions();
  const qrm::Status status = qrm::test::Run(options);
  if (!status.ok()) {
    std::cerr << "damage test failed: " << qrm::MessageOf(status) << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
