// qrmd started again and again on a damaged database: it is ready within two seconds, every file is
// still there, the containers keep what they have, and new ones are admitted.
//   test_damage [--rounds=N] [--seed=N]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>

#include "test/crash/file_damage.h"
#include "test/crash/pins.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

constexpr std::chrono::milliseconds kReadyWithin{2000};
constexpr std::chrono::milliseconds kReconcilePeriod{3000};
constexpr std::size_t kPods = 6;
constexpr std::size_t kPlugins = 2;

class DamageTest {
 public:
  DamageTest(const std::string& configs, uint32_t seed)
      : damage_(seed),
        runtime_(dir_.path()),
        node_({.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
               .work_dir = dir_ / "node",
               .config = configs + "/builtin.yaml",
               .nri_socket = runtime_.nri_socket(),
               .cri_socket = runtime_.cri_socket(),
               .builtin_plugins = "cpu,memory",
               .reconcile_period = fmt::format("{}ms", kReconcilePeriod.count())}) {}

  Status Start() {
    QRM_RETURN_IF_ERROR(node_.Start(kPlugins));
    return FillUp();
  }

  Status Round(int round) {
    QRM_RETURN_IF_ERROR(ReplacePod());  // so that the log holds the latest commits
    node_.KillDaemon();
    const std::string database = state_dir_ + "/checkpoint.db";
    QRM_ASSIGN_OR_RETURN(const DamageReport done, damage_.Apply(database, round));
    if (const Status held = ExpectCheckpointSurvives(done); !held.ok()) {
      return Annotate(held, fmt::format("{} of {}", done.what, database));
    }
    ++rounds_[done.what];
    return TidyUp();
  }

  std::string Summary() const {
    std::string text;
    for (const auto& [what, count] : rounds_) {
      text += fmt::format("  {:5} {}\n", count, what);
    }
    return text + fmt::format("the slowest was ready after {} ms", slowest_.count());
  }

 private:
  using Inodes = std::map<ino_t, std::string>;

  PodSpec NextPod() {
    const std::string name = "pod" + std::to_string(next_pod_++);
    return {.name = name,
            .uid = "uid-" + name,
            .labels = {{"katalyst.kubewharf.io/pod_role", "database"}},
            .container = {.milli_cpus = 3000, .memory_bytes = int64_t{1} << 30}};
  }

  Status AddPod() {
    const PodSpec pod = NextPod();
    QRM_RETURN_IF_ERROR(runtime_.RunPod(pod));
    pods_[pod.uid] = pod.name;
    return OkStatus();
  }

  Status FillUp() {
    while (pods_.size() < kPods) {
      QRM_RETURN_IF_ERROR(AddPod());
    }
    return OkStatus();
  }

  Status RemovePod() {
    const auto pod = pods_.begin();
    const std::string name = pod->second;
    pods_.erase(pod);
    return runtime_.RemovePod(name);
  }

  Status ReplacePod() {
    QRM_RETURN_IF_ERROR(RemovePod());
    return AddPod();
  }

  Pins Running() const { return RunningPins(runtime_, pods_); }

  Inodes FilesOfState() const {
    Inodes inodes;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(state_dir_)) {
      struct stat file = {};
      const std::string name = entry.path().string();
      if (!name.ends_with("-shm") && ::lstat(name.c_str(), &file) == 0) {
        inodes[file.st_ino] = name;
      }
    }
    return inodes;
  }

  /// What holds whatever was damaged.
  Status StartOnDamage() {
    const Inodes before = FilesOfState();
    const Pins running = Running();
    const auto begin = std::chrono::steady_clock::now();
    QRM_RETURN_IF_ERROR(node_.Start(kPlugins));
    QRM_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, node_.GetStatus());
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    slowest_ = std::max(slowest_, took);
    if (!status.ready() || took > kReadyWithin) {
      return Errorf(StatusCode::kInternal, "not ready after {} ms: {}", took.count(),
                    status.ShortDebugString());
    }
    const Inodes after = FilesOfState();
    for (const auto& [inode, name] : before) {
      if (!after.contains(inode)) {
        return Errorf(StatusCode::kInternal, "what was at {} is gone", name);
      }
    }
    if (Running() != running) {
      return Errorf(StatusCode::kInternal, "containers changed: {} ran, {} run", ToString(running),
                    ToString(Running()));
    }
    return ExpectOneOwner(running);
  }

  Status ExpectCheckpointSurvives(const DamageReport& done) {
    QRM_RETURN_IF_ERROR(StartOnDamage());
    if (done.forbidden) {
      const Status refused = AddPod();
      const std::string message = MessageOf(refused);
      if (refused.ok() || message.find('\n') != std::string::npos ||
          message.find("Permission denied") == std::string::npos) {
        return Errorf(StatusCode::kInternal, "admitted without a right to the disk, or said: {}",
                      message);
      }
      QRM_RETURN_IF_ERROR(damage_.Undo());
    }
    QRM_RETURN_IF_ERROR(ReplacePod());
    QRM_RETURN_IF_ERROR(AwaitAgreement(
        [this] { return Running(); },
        {{"checkpoint has", [this] { return CheckpointedPins(state_dir_); }}}, kReconcilePeriod));
    return ExpectOneOwner(Running());
  }

  /// What was moved aside would fill the disk in two thousand rounds.
  Status TidyUp() {
    for (const auto& [inode, name] : FilesOfState()) {
      if (name.find(".aside-") != std::string::npos) {
        std::filesystem::remove_all(name);
      }
    }
    return OkStatus();
  }

  FileDamage damage_;
  const TempDir dir_;
  const std::string state_dir_ = dir_ / "node/state/qrmd";
  SimulatedRuntime runtime_;
  Node node_;
  StringMap pods_;  // that run: UID -> name
  int next_pod_ = 100000;
  std::map<std::string, int> rounds_;
  std::chrono::milliseconds slowest_{0};
};

struct Options {
  int rounds = 40;
  uint32_t seed = 1;
  std::string configs = "test/crash";
};

Status Run(const Options& options) {
  DamageTest test(options.configs, options.seed);
  QRM_RETURN_IF_ERROR(test.Start());
  for (int round = 1; round <= options.rounds; ++round) {
    QRM_RETURN_IF_ERROR(Annotate(test.Round(round), fmt::format("round {}", round)));
  }
  std::cout << options.rounds << " starts on damaged databases:\n" << test.Summary() << std::endl;
  return OkStatus();
}

/// root reads what it has no right to, unless this process's children cannot.
void GiveUpOverridingPermissions() {
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
  ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
}

}  // namespace
}  // namespace qrm::test

int main(int argc, char** argv) {
  CLI::App app("Damages databases and checks that qrmd starts all the same.");
  qrm::test::Options options;
  app.add_option("--rounds", options.rounds, "how many are damaged");
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
