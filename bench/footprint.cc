// The footprint of a real qrmd: memory with 1,000 and with 10,000 containers, and the time from its
// start until it has placed one more.
//   footprint [--smoke]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_dir.h"
#include "bench/command_line.h"
#include "bench/real_node.h"
#include "bench/target.h"

namespace qrm::bench {
namespace {

struct Targets {
  std::size_t containers;
  double megabytes;
  double milliseconds;
};
constexpr Targets kTargets[] = {{1000, 36, 200}, {10000, 75, 400}};
constexpr int kStarts = 7;
/// How long qrmd rests, except its reconciles, before its memory is read: 10 s after it attached it
/// lists everything once more, and it gives back unused memory every 5 s.
constexpr std::chrono::seconds kRest{16};

class Daemon {
 public:
  Daemon(const std::string& directory, const std::string& bin_dir)
      : node_(directory, bin_dir, PluginsIn::kDaemon, "3s") {}

  /// Returns when qrmd reports that it is ready.
  void Start(std::size_t containers) { node_.Start(containers); }
  /// The time until it has placed one more, which is then removed. Units: milliseconds.
  double StartAndPlace(std::size_t containers) {
    const auto begin = std::chrono::steady_clock::now();
    node_.StartUnasked();
    node_.Run(containers, Kind::kPooled);
    const auto took = std::chrono::steady_clock::now() - begin;
    node_.Remove(containers);
    return std::chrono::duration<double, std::milli>(took).count();
  }
  void Stop() { node_.Stop(); }

  void RunPods(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      node_.Run(i, Kind::kPooled);
    }
  }

  /// Resident memory, and its part that is not the program's and its libraries' files.
  double Resident() { return MemoryOf(std::to_string(node_.pid()), "VmRSS"); }
  double Anonymous() { return MemoryOf(std::to_string(node_.pid()), "RssAnon"); }

 private:
  RealNode node_;
};

/// The same number of containers before and after a restart.
bool JudgeMemory(Daemon& daemon, const Targets& targets, std::chrono::seconds rest) {
  const std::size_t containers = targets.containers;
  daemon.Start(0);
  const double empty = daemon.Resident();
  daemon.RunPods(containers);
  std::this_thread::sleep_for(rest);
  const double resident = daemon.Resident();
  const double anonymous = daemon.Anonymous();
  daemon.Stop();

  daemon.Start(containers);
  std::this_thread::sleep_for(rest);
  const double restarted = daemon.Resident();
  fmt::print(
      "qrmd: {:.1f} MB resident when empty, {:.1f} MB with {} containers, of which {:.1f} MB are "
      "no file's; {:.1f} MB after a restart, of which {:.1f} MB\n",
      empty, resident, containers, anonymous, restarted, daemon.Anonymous());
  daemon.Stop();
  return Judge(fmt::format("resident memory of qrmd with {} containers", containers),
               targets.megabytes, std::max(resident, restarted), "MB");
}

bool JudgeStarts(Daemon& daemon, const Targets& targets) {
  std::vector<double> starts;
  for (int i = 0; i < kStarts; ++i) {
    starts.push_back(daemon.StartAndPlace(targets.containers));
    daemon.Stop();
  }
  fmt::print("qrmd: one more of {} placed after p50 {:.0f} ms, worst {:.0f} ms\n",
             targets.containers, Median(starts), Quantile(starts, 1));
  return Judge(fmt::format("start of qrmd until it places one more of {}, p50", targets.containers),
               targets.milliseconds, Median(starts), "ms");
}

bool Measure(const std::string& bin_dir, const Targets& targets, std::chrono::seconds rest) {
  const BenchDir dir;
  Daemon daemon(dir.path(), bin_dir);
  const bool small = JudgeMemory(daemon, targets, rest);
  return JudgeStarts(daemon, targets) && small;
}

int Main(const CommandLine& options) {
  if (options.smoke) {
    Measure(BinDir(), {.containers = 20, .megabytes = kTargets[0].megabytes, .milliseconds = 1000},
            {});
    return EXIT_SUCCESS;
  }
  bool held = true;
  for (const Targets& targets : kTargets) {
    held = Measure(BinDir(), targets, kRest) && held;
  }
  return options.StatusOf(held);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv));
}
