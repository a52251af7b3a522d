// Pods of one exclusive CPU come and go beside containers that share the rest, on a real
// containerd: the runtime's time for each step with qrmd and without any plugin, in turns in one
// run.
//   sharers_bench [--sharers N] [--cycles N] [--smoke]      scripts/containerd.sh starts it
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "api/base/check.h"
#include "bench/command_line.h"
#include "bench/real_node.h"
#include "bench/target.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/cpuset_watcher.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/await.h"

namespace qrm::bench {
namespace {

using std::chrono::duration;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::array<std::string_view, 4> kSteps = {"run pod", "create", "start", "remove"};
constexpr double kMoreForCreation = 20;  // milliseconds, in the median
constexpr double kMoreForOthers = 10;
constexpr double kMostCpuOf10 = 15;
constexpr double kMostCpuOf100 = 60;
constexpr seconds kGrownBackWithin{10};

struct Sizes {
  std::vector<int> sharers = {10, 100};
  int turns = 3;
  int cycles = 20;  // of each turn
};

/// The times of all turns of one kind. Units: milliseconds.
struct Times {
  std::map<std::string_view, std::vector<double>> of_steps;
  double cpu = 0;  // of the manager
  int cycles = 0;
};

double Milliseconds(nanoseconds time) {
  return duration<double, std::milli>(time).count();
}

/// CPU time of a process so far. Source: proc(5), /proc/PID/stat.
double CpuOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string word;
  constexpr int kUserTime = 14;
  for (int field = 1; field < kUserTime; ++field) {
    file >> word;
  }
  double user = 0;
  double system = 0;
  file >> user >> system;
  return (user + system) * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// A node with so many containers that share its CPUs.
class Sharers {
 public:
  explicit Sharers(int count) {
    std::ofstream(Path("sharers-qrmd.yaml")) << "plugins: {cpu: {static: true}}\n";
    StartManager();
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("sharer{}", i);
      const auto pod = kubelet_.RunPod({.name = name, .uid = "uid-" + name, .container = {}});
      Must(pod.status());
      ids_.push_back(pod->container_id);
    }
    QRM_CHECK(test::Await([&] { return GetDeferred() == 0; }, kGrownBackWithin));
    for (const std::string& id : ids_) {
      told_.push_back(Told(id));
    }
    StopManager();
  }
  ~Sharers() { Must(kubelet_.RemoveAllPods()); }
  Sharers(const Sharers&) = delete;
  Sharers& operator=(const Sharers&) = delete;

  void RunAlone(int cycles, Times& times) { Run(cycles, times); }
  /// False when containers that share have not all grown back in time.
  bool RunManaged(int cycles, Times& times) {
    StartManager();
    const double before = CpuOf(node().daemon_pid());
    Run(cycles, times);
    const bool back = test::Await([&] { return HaveGrownBack(); }, kGrownBackWithin);
    times.cpu += CpuOf(node().daemon_pid()) - before;
    StopManager();
    return back;
  }
  /// How often a shared container was seen on the owner's CPU, since the first process in its
  /// cgroup.
  std::size_t Watch(int cycles) {
    StartManager();
    std::size_t overlaps = 0;
    for (int i = 0; i < cycles; ++i) {
      const test::PodSpec owner = Owner();
      test::CpusetWatcher watcher(
          {.root = test::CpusetsBelow(test::FromEnvironment("QRM_CGROUP_PARENT")),
           .owner = owner.uid,
           .others = ids_});
      const auto pod = kubelet_.RunPod(owner);
      Must(pod.status());
      watcher.Stop();
      QRM_CHECK(watcher.looks_at_owner() > 0);
      overlaps += watcher.overlaps().size();
      Must(kubelet_.RemovePod(*pod));
    }
    StopManager();
    return overlaps;
  }

 private:
  static std::string Path(const std::string& name) {
    return test::FromEnvironment("QRM_WORK_DIR") + "/" + name;
  }
  test::PodSpec Owner() {
    const std::string name = fmt::format("owner{}", next_++);
    return {.name = name,
            .uid = "uid-" + name,
            .container = {
                .name = "main", .milli_cpus = 1000, .memory_bytes = 64 << 20, .cpu_limit = true}};
  }
  test::Kubelet::Options KubeletOptions() {
    test::Kubelet::Options options = test::KubeletBesideContainerd();
    options.on_call = [this](const std::string& call, nanoseconds took) {
      for (const std::string_view step : kSteps) {
        took_[step] += call.starts_with(step) ? took : nanoseconds(0);
      }
      took_["remove"] += call.starts_with("stop") ? took : nanoseconds(0);
    };
    return options;
  }
  /// The time from StartManager to StopManager.
  test::Node& node() {
    QRM_CHECK(node_.has_value());
    return *node_;
  }
  void StartManager() {
    test::Node::Options options = test::QrmdBesideContainerd("sharers", {.builtin_plugins = "cpu"});
    options.bin_dir = BinDir();
    node_.emplace(options);
    Must(node().Start(1));
  }
  void StopManager() {
    Must(node().Stop());
    node_.reset();
  }
  void Run(int cycles, Times& times) {
    for (int i = 0; i < cycles; ++i) {
      took_.clear();
      const auto pod = kubelet_.RunPod(Owner());
      Must(pod.status());
      Must(kubelet_.RemovePod(*pod));
      for (const auto& [step, took] : took_) {
        times.of_steps[step].push_back(Milliseconds(took));
      }
    }
    times.cycles += cycles;
  }
  uint64_t GetDeferred() {
    const auto status = node().GetStatus();
    return status.ok() ? status->reconcile().deferred_updates() : 1;
  }
  /// The CPUs by the runtime's record, and by the kernel.
  std::string Told(const std::string& id) {
    const auto container = kubelet_.Inspect(id);
    Must(container.status());
    const auto& spec = container->at("runtimeSpec").at("linux");
    const std::string path = spec.at("cgroupsPath").get<std::string>();
    std::ifstream file(test::CpusetsBelow(path) / "cpuset.cpus");
    std::string kernel;
    file >> kernel;
    return spec.at("resources").at("cpu").at("cpus").get<std::string>() + " " + kernel;
  }
  bool HaveGrownBack() {
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (Told(ids_[i]) != told_[i]) {
        return false;
      }
    }
    return true;
  }

  std::map<std::string_view, nanoseconds> took_;  // in this cycle
  test::Kubelet kubelet_{KubeletOptions()};
  std::optional<test::Node> node_;
  std::vector<std::string> ids_;
  std::vector<std::string> told_;
  int next_ = 0;
};

void Print(int sharers, std::string_view who, Times& times) {
  fmt::print("{:7} {:10}", sharers, who);
  for (const std::string_view step : kSteps) {
    fmt::print(" {:>7.0f}", Median(times.of_steps[step]));
  }
  fmt::print(" {:>7.1f}\n", times.cpu / times.cycles);
}

bool Measure(int sharers, const Sizes& sizes) {
  Sharers node(sharers);
  Times alone;
  Times managed;
  bool back = true;
  for (int turn = 0; turn < sizes.turns; ++turn) {
    node.RunAlone(sizes.cycles, alone);
    back = node.RunManaged(sizes.cycles, managed) && back;
  }
  const std::size_t overlaps = node.Watch(sizes.cycles);
  fmt::print("sharers {:10} {:>7} {:>7} {:>7} {:>7} {:>7}   (ms, medians)\n", "", "run", "create",
             "start", "remove", "CPU");
  Print(sharers, "no plugin", alone);
  Print(sharers, "qrmd", managed);
  bool held = true;
  for (const std::string_view step : {"run pod", "create", "start"}) {
    held = Judge(fmt::format("{} beside {} sharers, beyond no plugin, p50", step, sharers),
                 step == "create" ? kMoreForCreation : kMoreForOthers,
                 Median(managed.of_steps[step]) - Median(alone.of_steps[step]), "ms") &&
           held;
  }
  held = Judge(fmt::format("CPU of qrmd a pod beside {} sharers", sharers),
               sharers <= 10 ? kMostCpuOf10 : kMostCpuOf100, managed.cpu / managed.cycles, "ms") &&
         held;
  held = Judge(fmt::format("{} sharers seen on an owner's CPU", sharers), 0,
               static_cast<double>(overlaps), "times") &&
         held;
  return Judge(fmt::format("turns after which {} sharers had not grown back in 10 s", sharers), 0,
               back ? 0 : 1, "turns") &&
         held;
}

int Main(const CommandLine& options) {
  Sizes sizes;
  if (options.smoke) {
    sizes = {.sharers = {3}, .turns = 1, .cycles = 2};
  }
  if (options.values.contains("--sharers")) {
    sizes.sharers = {options.Number("--sharers", 0)};
  }
  sizes.cycles = options.Number("--cycles", sizes.cycles);
  bool held = true;
  for (const int sharers : sizes.sharers) {
    held = Measure(sharers, sizes) && held;
  }
  return options.StatusOf(held);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv, {"--sharers", "--cycles"}));
}
