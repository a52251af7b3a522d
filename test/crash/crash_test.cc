// qrmd killed again and again while pods come and go, with real plugin processes: after each
// restart the checkpoint, the plugins and the runtime agree on every container, and no CPU has two
// owners.
//   test_crash [--rounds=N] [--seed=N]; the rounds of one seed differ only in what the machine's
//   own timing adds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "test/crash/pins.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/killer.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

constexpr std::size_t kPlugins = 2;
constexpr std::chrono::milliseconds kReconcilePeriod{3000};
constexpr int kMoreThanANodeHas = 40;  // CPUs
/// Of the 76 CPUs that pods can have. The others are for a pod that starts while qrmd is not
/// running, and for a pod whose admission was cut short and that still has its CPUs: then a pod
/// that runs without CPUs is an error, not a lack of room.
constexpr int kMostCpusTaken = 60;

class CrashTest {
 public:
  CrashTest(const std::string& configs, uint32_t seed)
      : random_(seed),
        programs_(std::filesystem::canonical("/proc/self/exe").parent_path()),
        configs_(configs + "/"),
        runtime_(dir_.path()),
        node_({.bin_dir = programs_,
               .work_dir = dir_ / "node",
               .config = configs_ + "qrmd.yaml",
               .nri_socket = runtime_.nri_socket(),
               .cri_socket = runtime_.cri_socket(),
               .reconcile_period = fmt::format("{}ms", kReconcilePeriod.count())}) {}

  Status Start() {
    QRM_RETURN_IF_ERROR(node_.Start(0));
    QRM_RETURN_IF_ERROR(node_.StartPlugin("cpu", "cpu", configs_ + "cpu.yaml"));
    return node_.StartPlugin("memory", "memory", configs_ + "memory.yaml", RegisterBy::kSocket);
  }

  /// Pods come and go until qrmd dies; then it is started, and all must agree.
  Status Round() {
    if (Draw(2) == 0) {
      const Killer killer(node_.daemon_pid(), std::chrono::microseconds(Draw(150000)));
      ChurnUntilItDies();
    } else {
      QRM_RETURN_IF_ERROR(DieAtAWrite());
    }
    CountWhatWasCutShort();
    QRM_RETURN_IF_ERROR(node_.Start(kPlugins));
    QRM_RETURN_IF_ERROR(ExpectAcknowledged());
    return ExpectAgreement();
  }

  /// The checkpoint is damaged while qrmd is not running: it starts all the same and asks the
  /// plugins.
  Status DamageRound() {
    node_.KillDaemon();
    const std::string database = dir_ / "node/state/qrmd/checkpoint.db";
    switch (Draw(5)) {
      case 0:
        std::filesystem::remove(database);
        break;
      case 1:
        std::filesystem::resize_file(database, 5000);
        break;
      case 2:
        std::filesystem::resize_file(database, 0);
        break;
      case 3:
        std::ofstream(database, std::ios::trunc) << "no database";
        break;
      default:
        std::filesystem::remove(database);
        std::filesystem::create_directory(database);
    }
    ++damaged_;
    QRM_RETURN_IF_ERROR(node_.Start(kPlugins));
    return ExpectAgreement();
  }

  /// What qrmd wrote last, to explain a failure.
  std::string DaemonLog() const {
    std::ifstream file(dir_ / "node/logs/qrmd.log");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    constexpr std::size_t kEnd = 8000;
    return text.substr(text.size() > kEnd ? text.size() - kEnd : 0);
  }

  std::string Summary() const {
    return fmt::format(
        "{} pods admitted, {} rejected, {} removed, {} started without qrmd; {} operations "
        "and {} starts cut short, {} with pods that only plugins knew, {} with pods that were "
        "committed but not answered; {} checkpoints damaged; the slowest agreement took {} ms",
        admitted_, refused_, removed_, unseen_, cut_short_, died_starting_, granted_uncommitted_,
        committed_unanswered_, damaged_, slowest_agreement_.count());
  }

 private:
  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }

  /// Restarts qrmd so that it dies at one of its next writes: in its start, a commit, a repair.
  Status DieAtAWrite() {
    node_.KillDaemon();
    if (Draw(3) == 0) {
      ReplacePodUnseen();
    }
    ::setenv("LD_PRELOAD", (programs_ + "/libqrm-die-at-write.so").c_str(), 1);
    ::setenv("QRM_DIE_AT_WRITE", std::to_string(Draw(120)).c_str(), 1);
    Status started = node_.Start(kPlugins);
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("QRM_DIE_AT_WRITE");
    if (started.ok()) {
      ChurnUntilItDies();
      return OkStatus();
    }
    if (node_.DaemonRuns()) {
      return started;
    }
    ++died_starting_;
    return OkStatus();
  }

  /// Runs until qrmd is gone, or has survived all its work: then it is killed at rest.
  void ChurnUntilItDies() {
    bool connected = true;
    for (int i = 0; i < 60 && connected; ++i) {
      const Status done = pods_.empty() || Draw(3) > 0 ? AddPod() : RemovePod();
      connected = done.code() != StatusCode::kUnavailable;
      cut_short_ += connected ? 0 : 1;
    }
    node_.KillDaemon();
  }

  PodSpec MakePod(int64_t cpus, int64_t gib) {
    const std::string name = fmt::format("pod{}", next_pod_++);
    return {.name = name,
            .uid = "uid-" + name,
            .labels = {{"katalyst.kubewharf.io/pod_role", Draw(2) == 0 ? "database" : "ranker"}},
            .container = {.milli_cpus = cpus * 1000, .memory_bytes = gib << 30}};
  }

  /// Or removes one to make room.
  Status AddPod() {
    const int cpus = Draw(4) == 0 ? kMoreThanANodeHas : 1 + Draw(8);
    if (cpus < kMoreThanANodeHas && CpusTaken() + cpus > kMostCpusTaken) {
      return RemovePod();
    }
    const PodSpec pod = MakePod(cpus, 1 + Draw(5));
    const Status admitted = runtime_.RunPod(pod);
    if (admitted.ok()) {
      pods_[pod.uid] = pod.name;
    }
    admitted_ += admitted.ok() ? 1 : 0;
    refused_ += !admitted.ok() && admitted.code() != StatusCode::kUnavailable ? 1 : 0;
    return admitted;
  }

  /// Counts kills in an admission before its answer: between the plugins and the commit, or after
  /// the commit.
  void CountWhatWasCutShort() {
    const auto knows_more = [this](const StatusOr<Pins>& pins) {
      return pins.ok() && std::any_of(pins->begin(), pins->end(), [this](const auto& entry) {
               return !pods_.contains(entry.first);
             });
    };
    const bool committed = knows_more(Checkpointed());
    committed_unanswered_ += committed ? 1 : 0;
    granted_uncommitted_ += !committed && knows_more(GrantedPins(node_)) ? 1 : 0;
  }

  /// A pod goes and another comes while qrmd is not running: it has to forget the first and adopt
  /// the second.
  void ReplacePodUnseen() {
    if (pods_.empty()) {
      return;
    }
    (void)RemovePod();  // no process notices it
    const PodSpec pod = MakePod(1, 1);
    pods_[pod.uid] = pod.name;
    ++unseen_;
    waiting_.insert(pod.uid);
    runtime_.RunPodUnseen(pod);
  }

  Status RemovePod() {
    const auto pod = std::next(pods_.begin(), Draw(static_cast<int>(pods_.size())));
    const std::string name = pod->second;
    pods_.erase(pod);
    ++removed_;
    return runtime_.RemovePod(name);
  }

  Pins Running() const { return RunningPins(runtime_, pods_); }
  int CpusTaken() const {
    int taken = 0;
    for (const auto& [uid, pinned] : Running()) {
      taken += CpuSet::Parse(pinned.cpus).value().Count();
    }
    return taken;
  }
  StatusOr<Pins> Checkpointed() const { return CheckpointedPins(dir_ / "node/state/qrmd"); }

  /// The runtime's answers are on disk at once, not only after a reconcile.
  Status ExpectAcknowledged() const {
    const Pins running = Running();  // before the checkpoint, which is ahead of it
    QRM_ASSIGN_OR_RETURN(const Pins restored, Checkpointed());
    for (const auto& [uid, pinned] : running) {
      const auto found = restored.find(uid);
      // A container that runs since before qrmd waits for its admission, and may have left the
      // exclusive CPUs of others until then. It gets its own after they are on disk.
      const bool waits = pinned.cpus.empty() || waiting_.contains(uid);
      if (!waits && (found == restored.end() || !(found->second == pinned))) {
        return Errorf(StatusCode::kInternal, "{}runs but the checkpoint has {}",
                      ToString(Pins{{uid, pinned}}), ToString(restored));
      }
    }
    return OkStatus();
  }

  /// All agree within one period, on one owner for each CPU.
  Status ExpectAgreement() {
    const auto begin = std::chrono::steady_clock::now();
    QRM_RETURN_IF_ERROR(AwaitAgreement([this] { return Running(); },
                                       {{"checkpoint has", [this] { return Checkpointed(); }},
                                        {"plugins have", [this] { return GrantedPins(node_); }}},
                                       kReconcilePeriod));
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    slowest_agreement_ = std::max(slowest_agreement_, took);
    waiting_.clear();
    return ExpectOneOwner(Running());
  }

  std::mt19937 random_;
  const TempDir dir_;
  const std::string programs_;
  const std::string configs_;
  SimulatedRuntime runtime_;
  Node node_;
  StringMap pods_;  // that run: UID -> name
  int next_pod_ = 0;
  int admitted_ = 0;
  int refused_ = 0;
  int removed_ = 0;
  int cut_short_ = 0;
  int damaged_ = 0;
  int died_starting_ = 0;
  int unseen_ = 0;                 // pods that came while qrmd was not running
  std::set<std::string> waiting_;  // UIDs of pods that lack their CPUs
  int granted_uncommitted_ = 0;
  int committed_unanswered_ = 0;
  std::chrono::milliseconds slowest_agreement_{0};
};

struct Options {
  int rounds = 20;
  int damage_every = 10;
  uint32_t seed = 1;
  std::string configs = "test/crash";
};

Status Run(const Options& options) {
  CrashTest test(options.configs, options.seed);
  QRM_RETURN_IF_ERROR(test.Start());
  for (int round = 1; round <= options.rounds; ++round) {
    Status held = test.Round();
    if (held.ok() && options.damage_every > 0 && round % options.damage_every == 0) {
      held = test.DamageRound();
    }
    if (!held.ok()) {
      return Errorf(held.code(), "round {}: {}\n{}", round, MessageOf(held), test.DaemonLog());
    }
    if (round % 50 == 0 || round == options.rounds) {
      std::cout << "round " << round << ": " << test.Summary() << '\n' << std::flush;
    }
  }
  return OkStatus();
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Kills qrmd at random instants and checks that nothing was lost.");
  qrm::test::Options options;
  app.add_option("--rounds", options.rounds, "how often qrmd is killed");
  app.add_option("--damage-every", options.damage_every,
                 "after every n-th round the checkpoint is damaged; 0: never");
  app.add_option("--seed", options.seed, "which pods come and go, and when qrmd is killed");
  app.add_option("--configs", options.configs, "where the configurations are");
  CLI11_PARSE(app, argc, argv);
  const qrm::Status status = qrm::test::Run(options);
  if (!status.ok()) {
    std::cerr << "crash test failed: " << qrm::MessageOf(status) << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
