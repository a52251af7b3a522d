// The cost of a period on a node where nothing changes, and of one changed container: 10,000
// containers, three real plugins, the real reconciler.
//   reconcile_bench [--containers N] [--plugins-from DIR] [--smoke]
// DIR has the programs qrm-plugin-cpu, -memory and -nic, which replace the built-in plugins: such
// as the ones in Go that scripts/bench.sh builds of test/interop/katalyst/plugin.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "bench/bench_node.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/reconciler.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/live_containers.h"
#include "test/support/await.h"
#include "test/support/fake_runtime.h"
#include "test/support/temp_dir.h"

namespace qrm::bench {
namespace {

constexpr double kTargetMilliseconds = 20;
/// With plugins that report all allocations in each period, in another order each time. Units:
/// milliseconds, and for each thousand containers.
constexpr double kTargetOfProcesses = 10;
constexpr int kTicks = 21;
constexpr char kCgroup[] = "/kubepods/burstable/pod0/container0";

/// The processor time of this process, all threads. Units: milliseconds.
double ProcessorTime() {
  return ProcessorMicroseconds(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
}

class IdleNode {
 public:
  /// Plugins are built in, or programs in `bin_dir`.
  IdleNode(std::size_t containers, const std::string& bin_dir)
      : node_(dir_.path(), bin_dir, bin_dir.empty() ? PluginsIn::kDaemon : PluginsIn::kProcesses) {
    std::map<SharedText, std::set<SharedText>> pods;
    std::map<ContainerKey, manager::LiveContainer> live;
    node_.Run([&] {
      for (std::size_t i = 0; i < containers; ++i) {
        const placement::ContainerDemand demand = Demand(i);
        node_.Admit(demand);
        pods[demand.pod.uid] = {"sandbox-" + demand.pod.uid};
        live[demand.key()] = {demand.runtime_id, "sandbox-" + demand.pod.uid, true, kCgroup};
      }
    });
    live_.Reset(pods, std::move(live));
    MakeCgroup();
  }
  // NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
  ~IdleNode() {
    node_.RunOnIo([this] { reconciler_.Stop(); });
  }
  IdleNode(const IdleNode&) = delete;
  IdleNode& operator=(const IdleNode&) = delete;

  /// One period. Returns its processor time.
  double Tick() {
    const double before = ProcessorTime();
    const uint64_t runs = reconciler_.GetStatus().runs;
    reconciler_.Trigger();
    QRM_CHECK(test::Await([&] { return reconciler_.GetStatus().runs > runs; }));
    node_.RunOnIo([] {});
    return ProcessorTime() - before;
  }

  /// Admits one more, number `number`, which the runtime has recreated since, so that it needs an
  /// update. Returns the processor time of the reconcile that sends it.
  double AddOne(std::size_t number) {
    const placement::ContainerDemand demand = Demand(number);
    node_.Run([&] { node_.Admit(demand); });
    live_.Add(demand.key(), {"again-" + demand.pod.uid, "sandbox", true, kCgroup});
    return Tick();
  }

  std::size_t commits() const { return node_.commits(); }
  std::vector<std::filesystem::file_time_type> LogTimes() const { return node_.LogTimes(); }
  std::size_t updates() const { return runtime_.updates().size(); }
  std::string problem() const { return reconciler_.GetStatus().last_problem; }

 private:
  static placement::ContainerDemand Demand(std::size_t number) {
    placement::ContainerDemand demand = BenchNode::DemandOf(number, Kind::kPooled);
    demand.runtime_id = "container-" + demand.pod.uid;
    return demand;
  }
  // A cgroup that is read for all containers, with the files of cgroup v1.
  void MakeCgroup() {
    const std::string cpusets = dir_ / "cgroup/cpuset";
    std::filesystem::create_directories(cpusets + kCgroup);
    for (const std::string& directory : {cpusets, cpusets + kCgroup}) {
      std::ofstream(directory + "/cpuset.cpus") << "0-127\n";
      std::ofstream(directory + "/cpuset.mems") << "0-1\n";
    }
  }
  // The cost of a look, without its result: the containers' CPUs differ.
  StatusOr<manager::CgroupCpuset> Look(const std::string& cgroups_path) {
    const auto cpuset = cgroups_.ReadByPath(cgroups_path);
    QRM_CHECK(cpuset.ok());
    return Errorf(StatusCode::kNotFound, "not to be compared");
  }

  // In memory: the measured part writes nothing.
  const test::TempDir dir_ = test::TempDir::InMemory();
  BenchNode node_;
  manager::LiveContainers live_;
  test::FakeRuntime runtime_;
  const manager::CgroupReader cgroups_{dir_ / "cgroup"};
  manager::ForeignWrites writes_;
  manager::DriftCheck drift_{{.read = [this](const std::string& path) { return Look(path); },
                              .live = live_,
                              .writes = writes_}};
  manager::Reconciler reconciler_{
      {node_.io(), node_.state(), node_.plugins(), runtime_, live_, node_.machine(), drift_},
      {.period = std::chrono::hours(1)}};
};

double TargetOf(std::size_t containers, bool processes) {
  return processes ? kTargetOfProcesses * static_cast<double>(containers) / 1000
                   : kTargetMilliseconds;
}

bool MeasureChanges(IdleNode& node, std::size_t containers, std::string_view whose, double limit) {
  const std::size_t updates = node.updates();
  std::vector<double> ticks;
  ticks.reserve(kTicks);
  for (std::size_t i = 0; i < kTicks; ++i) {
    ticks.push_back(node.AddOne(containers + i));
  }
  QRM_CHECK(node.problem().empty());
  fmt::print("one changed of {} containers: CPU p50 {:.2f} ms, p90 {:.2f} ms\n", containers,
             Median(ticks), Quantile(ticks, 0.9));
  const bool one_each = Judge("one changed container: updates, each", 1,
                              static_cast<double>(node.updates() - updates) / kTicks, "updates");
  return Judge(fmt::format("reconcile of one changed of {} containers, {}, CPU p50", containers,
                           whose),
               limit, Median(ticks), "ms") &&
         one_each;
}

bool Measure(std::size_t containers, const std::string& bin_dir) {
  IdleNode node(containers, bin_dir);
  const double first = node.Tick();
  const std::size_t commits = node.commits();
  const auto log_times = node.LogTimes();
  std::vector<double> ticks;
  ticks.reserve(kTicks);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kTicks; ++i) {
    ticks.push_back(node.Tick());
  }
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  QRM_CHECK(node.problem().empty());
  fmt::print(
      "idle reconcile, {} containers: CPU p50 {:.2f} ms, p90 {:.2f} ms, first {:.2f} ms; "
      "elapsed {:.2f} ms a tick\n",
      containers, Median(ticks), Quantile(ticks, 0.9), first, took.count() / kTicks);
  const bool quiet =
      Judge("idle reconcile: commits of qrmd", 0, static_cast<double>(node.commits() - commits),
            "commits") &&
      Judge("idle reconcile: states written by plugins or qrmd", 0,
            node.LogTimes() == log_times ? 0 : 1, "writes") &&
      Judge("idle reconcile: container updates", 0, static_cast<double>(node.updates()), "updates");
  const std::string_view whose = bin_dir.empty() ? "built-in plugins" : "plugins of others";
  const double limit = TargetOf(containers, !bin_dir.empty());
  const bool cheap =
      Judge(fmt::format("idle reconcile of {} containers, {}, CPU p50", containers, whose), limit,
            Median(ticks), "ms");
  return MeasureChanges(node, containers, whose, limit) && cheap && quiet;
}

int Main(const CommandLine& options) {
  log::SetLevel(log::Level::kError);
  return options.StatusOf(
      Measure(options.Number<std::size_t>("--containers", options.smoke ? 100 : 10000),
              options.Text("--plugins-from")));
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(
      qrm::bench::ReadCommandLine(argc, argv, {"--containers", "--plugins-from"}));
}
