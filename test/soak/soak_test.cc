// Pods that come and go for half an hour: the resources and the answer times of qrmd and its
// plugins must stop growing.
//   test_soak [--minutes=N] [--minute-seconds=N] [--pods-per-second=N]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/soak/flatness.h"
#include "test/soak/process_use.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int minutes = 30;
  int minute_seconds = 60;
  int pods_per_second = 20;
  int settled_from = 5;  // the first minute that is judged
  int pods = 100;        // that run at a time
  double slack = 1;      // times what each column may grow on top of its factor
  std::string configs = "test/soak";
};

/// One column of the report: its name, and how much it may still grow.
struct Column {
  const char* name;
  Tolerance tolerance;
};

constexpr Tolerance kMemory = {.factor = 1.05, .extra = 1};
constexpr Tolerance kLatency = {.factor = 1.5, .extra = 2};
constexpr Column kColumns[] = {
    {"qrmd MiB", kMemory},
    {"cpu MiB", kMemory},
    {"memory MiB", kMemory},
    {"state MiB", {.factor = 1.05, .extra = 2}},
    {"log MiB", {.factor = 1.05, .extra = 2}},
    {"qrmd fds", {.factor = 1, .extra = 2}},
    {"plugin fds", {.factor = 1, .extra = 2}},
    {"qrmd threads", {.factor = 1.2, .extra = 2}},
    {"p50 ms", kLatency},
    {"p90 ms", kLatency},
    {"p99 ms", {.factor = 2, .extra = 10}},
};

using Row = std::vector<double>;  // one value for each column

class Soak {
 public:
  explicit Soak(Options options)
      : options_(std::move(options)),
        runtime_(dir_.path()),
        node_({.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
               .work_dir = dir_ / "node",
               .config = options_.configs + "/qrmd.yaml",
               .nri_socket = runtime_.nri_socket(),
               .cri_socket = runtime_.cri_socket()}) {}

  Status Start() {
    QRM_RETURN_IF_ERROR(node_.Start(0));
    QRM_RETURN_IF_ERROR(node_.StartPlugin("cpu", "cpu", options_.configs + "/cpu.yaml"));
    return node_.StartPlugin("memory", "memory", options_.configs + "/memory.yaml",
                             RegisterBy::kSocket);
  }

  /// All minutes; a row of each.
  StatusOr<std::vector<Row>> Run() {
    PrintHeader();
    std::vector<Row> rows;
    next_pod_at_ = Clock::now();
    for (int minute = 1; minute <= options_.minutes; ++minute) {
      QRM_RETURN_IF_ERROR(ChurnFor(std::chrono::seconds(options_.minute_seconds)));
      QRM_ASSIGN_OR_RETURN(Row row, ReadRow());
      PrintRow(minute, row);
      rows.push_back(std::move(row));
      latencies_ms_.clear();
    }
    return rows;
  }

  int started() const { return started_; }
  int refused() const { return refused_; }

 private:
  /// Starts a pod whenever one is due and removes the oldest beyond those that may run.
  Status ChurnFor(std::chrono::seconds duration) {
    const auto end = Clock::now() + duration;
    const auto period =
        std::chrono::nanoseconds(std::chrono::seconds(1)) / options_.pods_per_second;
    while (next_pod_at_ < end) {
      std::this_thread::sleep_until(next_pod_at_);
      next_pod_at_ += period;
      QRM_RETURN_IF_ERROR(RunPod());
      if (running_.size() > static_cast<std::size_t>(options_.pods)) {
        QRM_RETURN_IF_ERROR(runtime_.RemovePod(running_.front()));
        running_.pop_front();
      }
    }
    return OkStatus();
  }

  /// Half of them in a pool, four in ten with exclusive CPUs, the others on the rest.
  PodSpec NextPod() {
    const auto draw = random_() % 10;
    const std::string name = "pod" + std::to_string(next_pod_++);
    PodSpec pod = {.name = name,
                   .uid = "uid-" + name,
                   .container = {.milli_cpus = 1000, .memory_bytes = int64_t{1} << 30}};
    if (draw < 9) {
      pod.labels["katalyst.kubewharf.io/pod_role"] = draw < 5 ? "online" : "database";
    }
    return pod;
  }

  Status RunPod() {
    const PodSpec pod = NextPod();
    Status admitted = runtime_.RunPod(pod);
    if (admitted.code() == StatusCode::kUnavailable && !node_.DaemonRuns()) {
      return admitted;
    }
    const std::chrono::duration<double, std::milli> took = runtime_.last_creation();
    latencies_ms_.push_back(took.count());
    started_ += admitted.ok() ? 1 : 0;
    refused_ += admitted.ok() ? 0 : 1;
    if (admitted.ok()) {
      running_.push_back(pod.name);
    } else {
      std::cout << "refused: " << MessageOf(admitted) << '\n' << std::flush;
    }
    return OkStatus();
  }

  StatusOr<Row> ReadRow() const {
    QRM_ASSIGN_OR_RETURN(const ProcessUse daemon, ReadProcessUse(node_.daemon_pid()));
    QRM_ASSIGN_OR_RETURN(const ProcessUse cpu, ReadProcessUse(node_.plugin_pid("cpu")));
    QRM_ASSIGN_OR_RETURN(const ProcessUse memory, ReadProcessUse(node_.plugin_pid("memory")));
    const DiskUse disk = ReadDiskUse(dir_ / "node/state");
    return Row{daemon.resident_mib,
               cpu.resident_mib,
               memory.resident_mib,
               disk.databases_mib,
               disk.logs_mib,
               static_cast<double>(daemon.descriptors),
               static_cast<double>(cpu.descriptors + memory.descriptors),
               static_cast<double>(daemon.threads),
               Percentile(latencies_ms_, 0.5),
               Percentile(latencies_ms_, 0.9),
               Percentile(latencies_ms_, 0.99)};
  }

  static void PrintHeader() {
    std::cout << "minute    pods";
    for (const Column& column : kColumns) {
      std::cout << fmt::format("{:>13}", column.name);
    }
    std::cout << '\n' << std::flush;
  }

  void PrintRow(int minute, const Row& row) const {
    std::cout << fmt::format("{:6}{:8}", minute, latencies_ms_.size());
    for (const double value : row) {
      std::cout << fmt::format("{:13.2f}", value);
    }
    std::cout << '\n' << std::flush;
  }

  const Options options_;
  const TempDir dir_;
  SimulatedRuntime runtime_;
  Node node_;
  std::mt19937 random_{1};
  std::deque<std::string> running_;  // names, the oldest first
  std::vector<double> latencies_ms_;
  Clock::time_point next_pod_at_;
  int next_pod_ = 0;
  int started_ = 0;
  int refused_ = 0;
};

/// Prints the growth of each column once things had settled; true when all are flat.
bool Report(const Options& options, const std::vector<Row>& rows) {
  const int first = std::min(options.settled_from, options.minutes);
  std::cout << fmt::format(
      "\nFrom minute {} on, flat means: the median of the last third of the minutes is at most the "
      "limit, which is\nthe median of their first third times a factor, and something on top.\n"
      "{:<14}{:>12}{:>12}{:>8}{:>8}{:>12}\n",
      first, "", "first third", "last third", "factor", "plus", "limit");
  bool all_flat = true;
  for (std::size_t column = 0; column < std::size(kColumns); ++column) {
    std::vector<double> values;
    for (std::size_t row = static_cast<std::size_t>(first) - 1; row < rows.size(); ++row) {
      values.push_back(rows[row][column]);
    }
    const char* const name = kColumns[column].name;
    Tolerance tolerance = kColumns[column].tolerance;
    tolerance.extra *= options.slack;
    const Flatness flatness = Judge(values, tolerance);
    std::cout << fmt::format("{:<14}{:12.2f}{:12.2f}{:8.2f}{:8.2f}{:12.2f}  {}\n", name,
                             flatness.early, flatness.late, tolerance.factor, tolerance.extra,
                             flatness.limit, flatness.flat ? "flat" : "GROWS");
    all_flat = all_flat && flatness.flat;
  }
  return all_flat;
}

StatusOr<bool> Run(const Options& options) {
  Soak soak(options);
  QRM_RETURN_IF_ERROR(soak.Start());
  QRM_ASSIGN_OR_RETURN(const std::vector<Row> rows, soak.Run());
  const bool flat = Report(options, rows);
  const double rate = soak.started() / (1.0 * options.minutes * options.minute_seconds);
  std::cout << fmt::format("{} pods started, {:.1f} a second; {} rejected\n{}\n", soak.started(),
                           rate, soak.refused(), flat ? "PASS" : "FAIL");
  return flat;
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Lets pods come and go, and says whether what qrmd takes stops growing.");
  qrm::test::Options options;
  app.add_option("--minutes", options.minutes, "how many minutes")->check(CLI::Range(8, 100000));
  app.add_option("--minute-seconds", options.minute_seconds, "how long a minute is");
  app.add_option("--pods-per-second", options.pods_per_second, "how many come, and go");
  app.add_option("--slack", options.slack, "how much more may grow in a run of seconds");
  app.add_option("--configs", options.configs, "where the configurations are");
  CLI11_PARSE(app, argc, argv);
  const qrm::StatusOr<bool> flat = qrm::test::Run(options);
  if (!flat.ok()) {
    std::cerr << "soak failed: " << qrm::MessageOf(flat.status()) << "\n";
    return EXIT_FAILURE;
  }
  return *flat ? EXIT_SUCCESS : EXIT_FAILURE;
}
