// One container through its whole admission on a node with two types of classes, with a class of
// each, beside the same on a node without classes, in turns in one run.
//   class_bench [--smoke]
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/log.h"
#include "bench/bench_dir.h"
#include "bench/bench_node.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "test/support/fake_class_provider.h"

namespace qrm::bench {
namespace {

constexpr double kTarget = 1.1;
constexpr std::size_t kResidents = 100;
/// Rounds until the logs have their full length.
constexpr std::size_t kWarmUp = 300;
/// So many that moments of a slow disk fall on both sides.
constexpr std::size_t kAdmissions = 5000;
constexpr const char* kTypes[] = {"cache", "disk"};

/// Two types of two classes each: one class is unlimited, and the other is counted.
manager::ClassBook::Providers TwoTypes() {
  manager::ClassBook::Providers providers;
  for (const char* const type : kTypes) {
    providers.push_back(std::make_unique<test::FakeClassProvider>(sdk::ClassType{
        .name = type, .classes = {{.name = "any"}, {.name = "counted", .capacity = 1000}}}));
  }
  return providers;
}

manager::ClassesOptions RulesOfTwoTypes() {
  manager::ClassesOptions options{.enabled = true};
  for (const char* const type : kTypes) {
    options.types[type].classes["counted"].namespaces = {"*"};
  }
  return options;
}

/// A node whose pods ask for classes where it has any.
class Side {
 public:
  explicit Side(NodeClasses classes)
      : asks_(!classes.providers.empty()),
        node_(dir_.path(), /*bin_dir=*/"", PluginsIn::kDaemon, std::move(classes)) {
    node_.Run([&] {
      for (std::size_t i = 0; i < kResidents; ++i) {
        node_.Admit(NextDemand(Kind::kPooled));
      }
    });
  }

  /// The time of one more container. Units: microseconds.
  double AdmitOne() {
    double took = 0;
    node_.Run([&] { took = node_.TimeOf(NextDemand(Kind::kPinned)); });
    return took;
  }

 private:
  placement::ContainerDemand NextDemand(Kind kind) {
    placement::ContainerDemand demand = BenchNode::DemandOf(next_++, kind);
    for (const char* const type : kTypes) {
      if (asks_) {
        demand.pod.annotations
            .Edit()[fmt::format("{}.resources.alpha.kubernetes.io/default", type)] = "counted";
      }
    }
    return demand;
  }

  const BenchDir dir_;
  const bool asks_;
  std::size_t next_ = 0;
  BenchNode node_;
};

bool Measure(std::size_t warm_up, std::size_t admissions) {
  Side without({});
  Side with({.options = RulesOfTwoTypes(), .providers = TwoTypes()});
  std::vector<double> without_times;
  std::vector<double> with_times;
  for (std::size_t i = 0; i < warm_up + admissions; ++i) {
    const double took_without = without.AdmitOne();
    const double took_with = with.AdmitOne();
    if (i >= warm_up) {
      without_times.push_back(took_without);
      with_times.push_back(took_with);
    }
  }
  fmt::print(
      "admission on {} containers, p50: {:.0f} us without classes, {:.0f} us with two types\n",
      kResidents, Median(without_times), Median(with_times));
  return Judge("admission of one container with two class types, p50", kTarget,
               Median(with_times) / Median(without_times), "x without");
}

int Main(const CommandLine& options) {
  log::SetLevel(log::Level::kError);
  return options.StatusOf(options.smoke ? Measure(2, 5) : Measure(kWarmUp, kAdmissions));
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv));
}
