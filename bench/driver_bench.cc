// One container placed by a compute driver that is a process, and one by a cpu plugin that is, turn
// by turn in one run.
//   driver_bench [--admissions N] [--smoke]
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/log.h"
#include "bench/bench_dir.h"
#include "bench/bench_node.h"
#include "bench/target.h"
#include "test/support/await.h"
#include "test/support/child_process.h"

namespace qrm::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTarget = 1.25;
constexpr std::size_t kResidents = 100;
constexpr std::size_t kWarmUp = 300;
constexpr char kDriver[] = "cci.qrm.io/round-robin";

/// One node, and how long each admission took there. Units: microseconds.
class Side {
 public:
  Side(const std::string& bin_dir, PluginsIn plugins_in) : node_(dir_.path(), bin_dir, plugins_in) {
    if (plugins_in == PluginsIn::kDaemon) {
      StartDriver(bin_dir);
    }
    node_.Run([&] {
      for (std::size_t i = 0; i < kResidents; ++i) {
        node_.Admit(BenchNode::DemandOf(next_++, Kind::kPooled));
      }
    });
  }

  void AdmitOne() {
    node_.Run([&] {
      manager::ContainerDemand demand = BenchNode::DemandOf(next_++, Kind::kPinned);
      if (driver_ != nullptr) {
        demand.pod.annotations["cci.qrm.io/driver"] = "round-robin";
      }
      const auto begin = Clock::now();
      node_.Admit(demand);
      times_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
      node_.Remove(demand.pod.uid);
    });
  }
  void Forget() { times_.clear(); }
  const std::vector<double>& times() const { return times_; }

 private:
  void StartDriver(const std::string& bin_dir) {
    driver_ = std::make_unique<test::ChildProcess>(
        std::vector<std::string>{bin_dir + "/qrm-example-round-robin-driver",
                                 "--plugins-registry-dir", dir_ / "plugins", "--state-dir",
                                 dir_ / "state", "--control-socket", ""},
        dir_ / "driver.log");
    QRM_CHECK(test::Await([&] {
      const auto info = node_.plugins().Find(kDriver);
      return info.has_value() && info->live;
    }));
  }

  const BenchDir dir_;
  BenchNode node_;
  std::unique_ptr<test::ChildProcess> driver_;
  std::size_t next_ = 0;
  std::vector<double> times_;
};

int Main(const std::vector<std::string>& words) {
  std::size_t warm_up = kWarmUp;
  std::size_t admissions = 500;
  bool smoke = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--smoke") {
      smoke = true;
      warm_up = 5;
      admissions = 5;
    } else if (words[i] == "--admissions" && i + 1 < words.size()) {
      admissions = std::stoul(words[++i]);
    } else {
      fmt::print(stderr, "usage: driver_bench [--admissions N] [--smoke]\n");
      return 2;
    }
  }
  log::SetLevel(log::Level::kError);
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string bin_dir = program.parent_path().parent_path() / "bin";
  Side driver(bin_dir, PluginsIn::kDaemon);
  Side plugin(bin_dir, PluginsIn::kCpuProcess);
  for (std::size_t i = 0; i < warm_up + admissions; ++i) {
    if (i == warm_up) {
      driver.Forget();
      plugin.Forget();
    }
    driver.AdmitOne();
    plugin.AdmitOne();
  }
  for (const auto& [name, side] :
       {std::pair("driver process", &driver), {"cpu plugin process", &plugin}}) {
    fmt::print("{:18} p50 {:5.0f} us  p90 {:5.0f} us\n", name, Median(side->times()),
               Quantile(side->times(), 0.9));
  }
  const bool reached =
      Judge("admission through a driver process, p50", kTarget,
            Median(driver.times()) / Median(plugin.times()), "x a cpu plugin process");
  return smoke || reached ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main({argv, argv + argc});
}
