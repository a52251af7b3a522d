// One container placed by a compute driver process, and one by a cpu plugin process; one without a
// driver on a node with a driver, and one on a node without drivers: in turns in one run.
//   driver_bench [--admissions N] [--smoke]
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/base/log.h"
#include "bench/bench_dir.h"
#include "bench/bench_node.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "manager/registry/plugins.h"
#include "test/support/await.h"
#include "test/support/child_process.h"

namespace qrm::bench {
namespace {

constexpr double kTarget = 1.25;
constexpr double kPlainTarget = 1.1;
constexpr std::size_t kResidents = 100;
constexpr std::size_t kWarmUp = 300;
constexpr char kDriver[] = "cci.qrm.io/round-robin";

enum class Drivers { kNone, kOne };

/// One node, and how long each admission took there. Units: microseconds.
class Side {
 public:
  Side(const std::string& bin_dir, PluginsIn plugins_in, Drivers drivers)
      : node_(dir_.path(), bin_dir, plugins_in) {
    if (drivers == Drivers::kOne) {
      StartDriver(bin_dir);
    }
    node_.Run([&] {
      for (std::size_t i = 0; i < kResidents; ++i) {
        node_.Admit(BenchNode::DemandOf(next_++, Kind::kPooled));
      }
    });
  }

  void AdmitByDriver() {
    placement::ContainerDemand demand = BenchNode::DemandOf(next_++, Kind::kPinned);
    demand.pod.annotations.Edit()["cci.qrm.io/driver"] = "round-robin";
    times_by_driver_.push_back(Admit(demand));
  }
  void AdmitPlain() { times_.push_back(Admit(BenchNode::DemandOf(next_++, Kind::kPinned))); }
  void Forget() {
    times_.clear();
    times_by_driver_.clear();
  }
  const std::vector<double>& times() const { return times_; }
  const std::vector<double>& times_by_driver() const { return times_by_driver_; }

 private:
  double Admit(const placement::ContainerDemand& demand) {
    double took = 0;
    node_.Run([&] { took = node_.TimeOf(demand); });
    return took;
  }
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
  std::vector<double> times_by_driver_;
};

int Main(const CommandLine& options) {
  const std::size_t warm_up = options.smoke ? 5 : kWarmUp;
  const std::size_t admissions =
      options.Number<std::size_t>("--admissions", options.smoke ? 5 : 500);
  log::SetLevel(log::Level::kError);
  const std::string bin_dir = BinDir();
  Side driver(bin_dir, PluginsIn::kDaemon, Drivers::kOne);
  Side plugin(bin_dir, PluginsIn::kCpuProcess, Drivers::kNone);
  Side plain(bin_dir, PluginsIn::kDaemon, Drivers::kNone);
  for (std::size_t i = 0; i < warm_up + admissions; ++i) {
    if (i == warm_up) {
      driver.Forget();
      plugin.Forget();
      plain.Forget();
    }
    driver.AdmitByDriver();
    plugin.AdmitPlain();
    driver.AdmitPlain();
    plain.AdmitPlain();
  }
  for (const auto& [name, times] : {std::pair("driver process", &driver.times_by_driver()),
                                    {"cpu plugin process", &plugin.times()},
                                    {"beside a driver", &driver.times()},
                                    {"without drivers", &plain.times()}}) {
    fmt::print("{:18} p50 {:5.0f} us  p90 {:5.0f} us\n", name, Median(*times),
               Quantile(*times, 0.9));
  }
  const bool driver_reached =
      Judge("admission through a driver process, p50", kTarget,
            Median(driver.times_by_driver()) / Median(plugin.times()), "x a cpu plugin process");
  const bool plain_reached =
      Judge("admission without driver beside one, p50", kPlainTarget,
            Median(driver.times()) / Median(plain.times()), "x a node without drivers");
  return options.StatusOf(driver_reached && plain_reached);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv, {"--admissions"}));
}
