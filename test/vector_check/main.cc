// Checks the topology engine, and the plugins that call it, against files of test vectors.
#include <fstream>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "test/vector_check/report.h"

namespace {

using qrm::vectors::CheckCpu;
using qrm::vectors::CheckCpuPlugin;
using qrm::vectors::CheckMemory;
using qrm::vectors::CheckMemoryPlugin;
using qrm::vectors::Json;
using qrm::vectors::Report;

constexpr int kMisuse = 2;

/// False when `file` cannot be read.
bool CheckFile(const std::string& file, void (*check)(const Json&, Report&), Report& report) {
  if (file.empty()) {
    return true;
  }
  std::ifstream stream(file);
  const Json rows = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_object()) {
    std::cerr << "cannot read vectors " << file
              << ": it is not a JSON object; name a vectors file\n";
    return false;
  }
  check(rows, report);
  return true;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Checks topology merging, CPU and memory assignment against rows of known results.");
  std::string topology;
  std::string cpu;
  std::string memory;
  app.add_option("--topology", topology, "merge rows, as in test/vectors/topology.json");
  app.add_option("--cpu", cpu, "CPU rows, as in test/vectors/cpu_assignment.json");
  app.add_option("--memory", memory, "memory rows, as in test/vectors/memory.json");
  bool through_plugins = false;
  app.add_flag("--through-plugins", through_plugins,
               "ask the cpu and memory plugins, as the manager does, instead of the functions");
  app.require_option(1, 4);
  CLI11_PARSE(app, argc, argv);

  Report report(std::cout);
  const bool read = CheckFile(topology, qrm::vectors::CheckTopology, report) &&
                    CheckFile(cpu, through_plugins ? CheckCpuPlugin : CheckCpu, report) &&
                    CheckFile(memory, through_plugins ? CheckMemoryPlugin : CheckMemory, report);
  if (!read) {
    return kMisuse;
  }
  std::cout << report.passed() << " passed, " << report.failed() << " failed\n";
  return report.failed() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
