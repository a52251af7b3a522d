// One container through hints, merge, allocate and durable commit, beside the least cost of its
// round trips and syncs, in turns in one run. Built-in plugins have no round trips: their floor is
// one append and fdatasync of the same bytes; a write in place, which qrmd does, is printed beside
// it. Then the same on nodes with 10 to 10,000 containers, in turns, and the bytes that this
// process writes for each.
//   admission_bench [--admissions N] [--smoke]
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "api/base/log.h"
#include "bench/bench_dir.h"
#include "bench/bench_node.h"
#include "bench/command_line.h"
#include "bench/floor.h"
#include "bench/target.h"
#include "test/support/synced_log.h"

namespace qrm::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTarget = 1.5;
constexpr double kTargetOfProcesses = 1.25;
/// Ratio of the p50 on the fullest node to the p50 on the emptiest.
constexpr double kGrowth = 1.2;
constexpr double kKilobytesWritten = 24;
constexpr std::size_t kNodes[] = {10, 100, 1000, 10000};
/// One node can be a twentieth slower than an equal node for the lifetime of its processes, and so
/// can the floor's.
constexpr int kNodesOfASize = 2;
constexpr std::size_t kLifetimes = 5;
/// The node before and while containers come and go.
constexpr std::size_t kResidents = 100;
/// Rounds until qrmd's logs have their full length, and a sync has no new size to record.
constexpr std::size_t kWarmUp = 300;
/// Looks at the bytes of an admission.
constexpr int kLooks = 9;

struct Program {
  std::string path;
  std::string bin_dir;
  std::size_t warm_up = kWarmUp;
  std::size_t admissions = 500;
  std::size_t turns = 20;
  std::size_t most_residents = 10000;
};

/// The times of each step. Units: microseconds.
using Steps = std::map<std::string, std::vector<double>>;

/// One side of the comparison. Units: microseconds.
struct Times {
  std::vector<double> total;
  Steps steps;

  void Print(const char* name) const {
    fmt::print("  {:10} p50 {:5.0f} us  p90 {:5.0f} us ", name, Median(total),
               Quantile(total, 0.9));
    for (const char* step : {"hints", "merge", "allocate", "check", "commit"}) {
      if (const auto found = steps.find(step); found != steps.end()) {
        fmt::print(" {} {:.0f}", step, Median(found->second));
      }
    }
    fmt::print("\n");
  }
};

/// What this process has had written to disks; pages that it changed again count again. Units:
/// bytes. Source: Linux, proc_pid_io(5), write_bytes.
double BytesWritten() {
  std::ifstream file("/proc/self/io");
  std::string word;
  while (file >> word) {
    if (word == "write_bytes:") {
      double bytes = 0;
      file >> bytes;
      return bytes;
    }
  }
  return 0;
}

/// A node where containers with exclusive CPUs come and go beside others.
class BusyNode {
 public:
  BusyNode(const Program& program, PluginsIn plugins_in, std::size_t residents)
      : residents_(residents), node_(dir_.path(), program.bin_dir, plugins_in) {
    node_.Run([&] {
      while (next_ < residents) {
        node_.Admit(BenchNode::DemandOf(next_++, Kind::kPooled));
      }
      for (std::size_t i = 0; i < program.warm_up; ++i) {
        AdmitOne();
      }
      times_.clear();
    });
  }

  /// Several admissions, since a real node has its caches for itself.
  void TakeTurn() {
    node_.Run([this] {
      for (int i = 0; i < kATurn; ++i) {
        AdmitOne();
      }
    });
  }

  std::size_t residents() const { return residents_; }
  /// The time of each admission. Units: microseconds.
  const std::vector<double>& times() const { return times_; }
  /// The bytes of one admission, with its recorded decision. Units: kilobytes.
  double Written() {
    std::vector<double> batches;
    for (int batch = 0; batch < 5; ++batch) {
      const double before = BytesWritten();
      node_.Run([this] {
        for (int i = 0; i < kBatch; ++i) {
          node_.Admit(BenchNode::DemandOf(next_++, Kind::kPooled));
        }
      });
      node_.Decisions();  // the last decision is in its file by then
      batches.push_back((BytesWritten() - before) / kBatch);
    }
    return Median(batches) / 1e3;
  }

 private:
  static constexpr int kBatch = 20;
  static constexpr int kATurn = 25;

  void AdmitOne() { times_.push_back(node_.TimeOf(BenchNode::DemandOf(next_++, Kind::kPinned))); }

  const std::size_t residents_;
  const BenchDir dir_;
  BenchNode node_;
  std::size_t next_ = 0;
  std::vector<double> times_;
};

bool MeasureGrowth(const Program& program, PluginsIn plugins_in) {
  const char* where = plugins_in == PluginsIn::kDaemon ? "built-in plugins" : "plugin processes";
  std::vector<std::unique_ptr<BusyNode>> nodes;
  for (int i = 0; i < kNodesOfASize; ++i) {
    for (const std::size_t residents : kNodes) {
      nodes.push_back(std::make_unique<BusyNode>(program, plugins_in,
                                                 std::min(residents, program.most_residents)));
    }
  }
  for (std::size_t i = 0; i < program.turns; ++i) {
    for (const auto& node : nodes) {
      node->TakeTurn();
    }
  }
  double written = 0;
  std::map<std::size_t, std::vector<double>> times;  // by residents
  for (const auto& node : nodes) {
    std::vector<double>& of_its_size = times[node->residents()];
    of_its_size.insert(of_its_size.end(), node->times().begin(), node->times().end());
    const double of_one = node->Written();
    fmt::print("{}: on {} containers p50 {:.0f} us, {:.1f} kB written\n", where, node->residents(),
               Median(node->times()), of_one);
    written = std::max(written, of_one);
  }
  const bool small = Judge(fmt::format("written for one admission, {}, the most", where),
                           kKilobytesWritten, written, "kB");
  const auto& [fewest, on_fewest] = *times.begin();
  const auto& [most, on_most] = *times.rbegin();
  return Judge(fmt::format("admission on {} containers / on {}, {}, p50", most, fewest, where),
               kGrowth, Median(on_most) / Median(on_fewest), "x") &&
         small;
}

/// What the lifetimes of a node's processes, and of the floor's, gave.
struct Measured {
  std::string disk;                // where the nodes have their state
  std::vector<std::size_t> bytes;  // that an admission adds to each log
  Times floors;
  Times in_place;
  Times admissions;
};

/// One such lifetime.
class Comparison {
 public:
  Comparison(const Program& program, PluginsIn plugins_in, Measured& measured)
      : program_(program),
        plugins_in_(plugins_in),
        measured_(measured),
        node_(dir_.path(), program.bin_dir, plugins_in) {
    node_.Run([&] {
      for (std::size_t i = 0; i < kResidents; ++i) {
        node_.Admit(BenchNode::DemandOf(next_++, Kind::kPooled));
      }
    });
  }

  void Run() {
    measured_.disk = std::filesystem::path(dir_.path()).parent_path().string();
    node_.Run([this] {
      measured_.bytes = BytesOfOne();
      for (std::size_t i = 0; i < program_.warm_up; ++i) {
        TimeOfOne();
      }
      plugins_in_ == PluginsIn::kDaemon ? TakeTurnsWithLogs() : TakeTurnsWithCalls();
    });
    ReadSteps();
  }

 private:
  double TimeOfOne() { return node_.TimeOf(BenchNode::DemandOf(next_++, Kind::kPinned)); }

  /// Reads the steps from the decisions that were kept.
  void ReadSteps() {
    const std::vector<checkpoint::DecisionTrace> decisions = node_.Decisions();
    const std::size_t measured = std::min(turns_, decisions.size());
    Steps& steps = measured_.admissions.steps;
    for (std::size_t i = decisions.size() - measured; i < decisions.size(); ++i) {
      const auto document = nlohmann::json::parse(decisions[i].json);
      for (const auto& step : document.at("steps")) {
        steps[step.at("step")].push_back(step.at("microseconds"));
      }
      const auto commit = decisions[i].commit.value_or(Clock::duration::zero());
      steps["commit"].push_back(Microseconds(commit));
    }
  }

  void TakeTurnsWithLogs() {
    using Length = test::SyncedLog::Length;
    const std::size_t bytes = measured_.bytes[0];
    test::SyncedLog appended(dir_ / "appended.log", bytes, Length::kGrows);
    test::SyncedLog in_place(dir_ / "in-place.log", bytes, Length::kStays);
    for (std::size_t i = 0; i < turns_; ++i) {
      measured_.floors.total.push_back(MicrosecondsOf([&] { appended.Append(); }));
      measured_.in_place.total.push_back(MicrosecondsOf([&] { in_place.Append(); }));
      measured_.admissions.total.push_back(TimeOfOne());
    }
  }

  void TakeTurnsWithCalls() {
    Floor floor({.directory = dir_.path(),
                 .record_bytes = measured_.bytes,
                 .request = SampleRequest(),
                 .program = program_.path});
    Times& floors = measured_.floors;
    for (std::size_t i = 0; i < turns_; ++i) {
      const double hints = MicrosecondsOf([&] { floor.CollectHints(); });
      const double allocate = MicrosecondsOf([&] { floor.Allocate(); });
      const double commit = MicrosecondsOf([&] { floor.Commit(); });
      floors.steps["hints"].push_back(hints);
      floors.steps["allocate"].push_back(allocate);
      floors.steps["commit"].push_back(commit);
      floors.total.push_back(hints + allocate + commit);
      measured_.admissions.total.push_back(TimeOfOne());
    }
  }

  /// The usual number of bytes that an admission adds to each log.
  std::vector<std::size_t> BytesOfOne() {
    std::vector<std::vector<double>> added;
    for (int i = 0; i < kLooks; ++i) {
      const placement::ContainerDemand demand = BenchNode::DemandOf(next_++, Kind::kPinned);
      const std::vector<std::size_t> before = node_.LogBytes();
      node_.Admit(demand);
      const std::vector<std::size_t> after = node_.LogBytes();
      added.resize(after.size());
      for (std::size_t log = 0; log < after.size(); ++log) {
        added[log].push_back(static_cast<double>(after[log] - before[log]));
      }
      node_.Remove(demand.pod.uid);
    }
    std::vector<std::size_t> bytes(added.size());
    std::transform(added.begin(), added.end(), bytes.begin(), [](const std::vector<double>& log) {
      return static_cast<std::size_t>(Median(log));
    });
    return bytes;
  }

  static ContainerRequest SampleRequest() {
    const placement::ContainerDemand demand = BenchNode::DemandOf(0, Kind::kPinned);
    return {.key = demand.key(),
            .pod_namespace = demand.pod.pod_namespace,
            .pod_name = demand.pod.name,
            .pod_role = demand.pod.role,
            .resource = "cpu",
            .requests = {{"cpu", 4}},
            .labels = demand.pod.labels,
            .annotations = demand.pod.annotations,
            .native_qos_class = demand.pod.qos_class,
            .hint = TopologyHint{.nodes = {0}, .preferred = true}};
  }

  const Program& program_;
  const PluginsIn plugins_in_;
  Measured& measured_;
  const BenchDir dir_;
  BenchNode node_;
  std::size_t next_ = 0;
  /// An admission without calls takes a fraction of a millisecond: more of them even out moments of
  /// a slow disk.
  const std::size_t turns_ = std::max<std::size_t>(program_.admissions / kLifetimes, 1) *
                             (plugins_in_ == PluginsIn::kDaemon ? 5 : 1);
};

bool Compare(const Program& program, PluginsIn plugins_in) {
  Measured measured;
  for (std::size_t i = 0; i < kLifetimes; ++i) {
    Comparison(program, plugins_in, measured).Run();
  }
  const char* where = plugins_in == PluginsIn::kDaemon ? "built-in plugins" : "plugin processes";
  fmt::print("{}: {} admissions on {} containers, state in {}, bytes per log {}\n", where,
             measured.admissions.total.size(), kResidents, measured.disk,
             fmt::join(measured.bytes, ", "));
  measured.floors.Print("floor");
  const double p50 = Median(measured.admissions.total);
  if (!measured.in_place.total.empty()) {
    measured.in_place.Print("in place");
    fmt::print("an admission takes {:.2f} times as long as a write in place\n",
               p50 / Median(measured.in_place.total));
  }
  measured.admissions.Print("admission");
  return Judge(fmt::format("admission of one container, {}, p50", where),
               plugins_in == PluginsIn::kDaemon ? kTarget : kTargetOfProcesses,
               p50 / Median(measured.floors.total), "x floor");
}

int Main(const CommandLine& options) {
  Program program{.path = std::filesystem::canonical("/proc/self/exe"), .bin_dir = BinDir()};
  if (options.smoke) {
    program.warm_up = 5;
    program.admissions = 5;
    program.turns = 1;
    program.most_residents = 100;
  }
  program.admissions = options.Number("--admissions", program.admissions);
  log::SetLevel(log::Level::kError);
  const bool built_in = Compare(program, PluginsIn::kDaemon);
  const bool processes = Compare(program, PluginsIn::kProcesses);
  const bool grows_little = MeasureGrowth(program, PluginsIn::kDaemon);
  const bool so_do_processes = MeasureGrowth(program, PluginsIn::kProcesses);
  return options.StatusOf(built_in && processes && grows_little && so_do_processes);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 5 && words[1] == qrm::bench::kFloorPluginFlag) {
    qrm::bench::ServeFloorPlugin(words[2], words[3], std::stoul(words[4]));
  }
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv, {"--admissions"}));
}
