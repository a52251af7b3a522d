// What a real qrmd takes: memory with 1,000 containers, and the time from its start until it is
// ready with them.
//   footprint [--containers N] [--smoke]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_dir.h"
#include "bench/real_node.h"
#include "bench/target.h"

namespace qrm::bench {
namespace {

constexpr double kTargetMegabytes = 40;
constexpr double kTargetMilliseconds = 200;
constexpr int kStarts = 7;
/// How long qrmd rests, but for its reconciles, before its memory is read: 10 s after it attached
/// it lists everything once more, and it gives back what it does not need every 5 s.
constexpr std::chrono::seconds kRest{16};

/// A line of /proc/PID/status. Units: megabytes (the file has KiB).
double MemoryOf(pid_t pid, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::string word;
  while (file >> word) {
    if (word == name + ":") {
      double kibibytes = 0;
      file >> kibibytes;
      return kibibytes * 1024 / 1e6;
    }
  }
  return 0;
}

class Daemon {
 public:
  Daemon(const std::string& directory, const std::string& bin_dir)
      : node_(directory, bin_dir, PluginsIn::kDaemon, "200ms") {}

  /// Returns when it says that it is ready. Units: milliseconds.
  double Start(std::size_t containers) {
    const auto begin = std::chrono::steady_clock::now();
    node_.Start(containers);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  }
  void Stop() { node_.Stop(); }

  void RunPods(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      node_.Run(i, Kind::kPooled);
    }
  }

  /// Resident, and the part of it that is not the program's and its libraries' files.
  double Resident() { return MemoryOf(node_.pid(), "VmRSS"); }
  double Anonymous() { return MemoryOf(node_.pid(), "RssAnon"); }

 private:
  RealNode node_;
};

/// The same number of containers before and after a restart.
bool JudgeMemory(Daemon& daemon, std::size_t containers, std::chrono::seconds rest) {
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
               kTargetMegabytes, std::max(resident, restarted), "MB");
}

bool JudgeStarts(Daemon& daemon, std::size_t containers) {
  std::vector<double> starts;
  for (int i = 0; i < kStarts; ++i) {
    starts.push_back(daemon.Start(containers));
    daemon.Stop();
  }
  fmt::print("qrmd: ready after p50 {:.0f} ms, worst {:.0f} ms\n", Median(starts),
             Quantile(starts, 1));
  return Judge(fmt::format("start of qrmd until ready with {} containers, p50", containers),
               kTargetMilliseconds, Median(starts), "ms");
}

bool Measure(const std::string& bin_dir, std::size_t containers, std::chrono::seconds rest) {
  const BenchDir dir;
  Daemon daemon(dir.path(), bin_dir);
  const bool small = JudgeMemory(daemon, containers, rest);
  return JudgeStarts(daemon, containers) && small;
}

int Main(const std::vector<std::string>& words) {
  std::size_t containers = 1000;
  bool smoke = false;
  std::chrono::seconds rest = kRest;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--smoke") {
      smoke = true;
      containers = 20;
      rest = {};
    } else if (words[i] == "--containers" && i + 1 < words.size()) {
      containers = std::stoul(words[++i]);
    } else {
      fmt::print(stderr, "usage: footprint [--containers N] [--smoke]\n");
      return 2;
    }
  }
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string bin_dir = program.parent_path().parent_path() / "bin";
  return Measure(bin_dir, containers, rest) || smoke ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace qrm::bench

int main(int argc, char** argv) {
  return qrm::bench::Main({argv, argv + argc});
}
