// Checks the topology engine against files of test vectors.
#include <fstream>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "test/vector_check/report.h"

namespace {

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
    std::cerr << "cannot read vectors " << file << ": it is no JSON object; name a vectors file\n";
    return false;
  }
  check(rows, report);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Checks topology merging, CPU and memory assignment against rows of known results.");
  std::string topology;
  std::string cpu;
  std::string memory;
  app.add_option("--topology", topology, "merge rows, as in test/vectors/topology.json");
  app.add_option("--cpu", cpu, "CPU rows, as in test/vectors/cpu_assignment.json");
  app.add_option("--memory", memory, "memory rows, as in test/vectors/memory.json");
  app.require_option(1, 3);
  CLI11_PARSE(app, argc, argv);

  Report report(std::cout);
  const bool read = CheckFile(topology, qrm::vectors::CheckTopology, report) &&
                    CheckFile(cpu, qrm::vectors::CheckCpu, report) &&
                    CheckFile(memory, qrm::vectors::CheckMemory, report);
  if (!read) {
    return kMisuse;
  }
  std::cout << report.passed() << " passed, " << report.failed() << " failed\n";
  return report.failed() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
