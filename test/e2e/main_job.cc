// qrm-main-job: what scripts/run.sh plays, on real containers and on the proposal's machine.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "api/base/errorf.h"
#include "test/e2e/containers_job.h"
#include "test/e2e/examples_job.h"
#include "test/support/environment.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

Status PlayInContainerd(const std::string& bin_dir, int period_ms) {
  if (FromEnvironment("QRM_CRI_SOCKET").empty()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot run containers: no containerd; run this through scripts/containerd.sh");
  }
  return PlayContainers({.bin_dir = bin_dir,
                         .work_dir = FromEnvironment("QRM_WORK_DIR"),
                         .cri_socket = FromEnvironment("QRM_CRI_SOCKET"),
                         .nri_socket = FromEnvironment("QRM_NRI_SOCKET"),
                         .image = FromEnvironment("QRM_IMAGE"),
                         .cgroup_parent = FromEnvironment("QRM_CGROUP_PARENT"),
                         .reconcile_period = std::chrono::milliseconds(period_ms)});
}

int Run(int argc, char** argv) {
  CLI::App app("Plays qrm's main job and compares what it sees with what must be");
  std::string bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path();
  std::string samples_dir = "docs/samples";
  int period_ms = 3000;
  app.add_option("--reconcile-period-ms", period_ms, "of qrmd")->capture_default_str();
  CLI::App* containers =
      app.add_subcommand("containers", "real containers; inside scripts/containerd.sh run");
  CLI::App* examples = app.add_subcommand("examples", "the proposal's examples, simulated");
  examples->add_option("--samples", samples_dir, "their configuration")->capture_default_str();
  std::string work_dir;
  examples->add_option("--work-dir", work_dir, "for sockets and state (default: a temporary one)");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);

  Status played;
  if (containers->parsed()) {
    played = PlayInContainerd(bin_dir, period_ms);
  } else if (examples->parsed()) {
    std::optional<TempDir> temporary;
    if (work_dir.empty()) {
      work_dir = temporary.emplace().path();
    }
    played = PlayExamples({.bin_dir = bin_dir,
                           .samples_dir = samples_dir,
                           .work_dir = work_dir,
                           .reconcile_period = std::to_string(period_ms) + "ms"});
  }
  if (!played.ok()) {
    std::cout << std::flush;
    std::cerr << "qrm-main-job: " << MessageOf(played) << "\n";
    return EXIT_FAILURE;
  }
  std::cout << "\nAll as it must be.\n";
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::test::Run(argc, argv);
}
