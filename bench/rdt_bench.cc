// The time to change the class of a running process of many threads, on the double of resctrl.
//   rdt_bench [--smoke]
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sched.h>

#include <fmt/format.h>

#include "api/base/check.h"
#include "bench/target.h"
#include "plugins/rdt/rdt_classes.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/resctrl/resctrl_double.h"
#include "test/support/temp_dir.h"

namespace qrm::bench {
namespace {

constexpr double kTargetMilliseconds = 50;
constexpr std::size_t kThreads = 1000;
constexpr int kMoves = 41;

void RunThreads() {
  for (std::size_t started = 1; started < kThreads; ++started) {
    std::thread(test::Idle).detach();
  }
  test::Idle();
}

/// The file system's thread and its caller take turns: on one processor, their work is measured and
/// not the waking of another processor.
void StayOnOneCpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(::sched_getcpu(), &cpus);
  QRM_CHECK(::sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
}

Status Measure(int moves) {
  StayOnOneCpu();
  QRM_ASSIGN_OR_RETURN(const auto resctrl, test::ResctrlDouble::Create());
  QRM_ASSIGN_OR_RETURN(const auto container, test::ContainerCgroup::Create());
  const test::TempDir directory;
  std::ofstream(directory / "rdt.yaml") << "partitions: {p: {classes: {gold: {}, silver: {}}}}";
  rdt::RdtClasses classes(
      {.config_file = directory / "rdt.yaml", .paths = resctrl->paths(), .etc = directory.path()});
  QRM_RETURN_IF_ERROR(classes.Refresh({}));
  container->Run(RunThreads);
  while (container->Threads().size() < kThreads) {
    std::this_thread::yield();
  }

  std::vector<double> milliseconds;
  for (int move = -1; move < moves; ++move) {  // the first fills the file system's caches
    const std::string to = move % 2 == 0 ? "silver" : "gold";
    Status applied;
    const double took =
        MicrosecondsOf([&] { applied = classes.Apply(container->Target(), "", to); });
    QRM_RETURN_IF_ERROR(applied);
    if (move >= 0) {
      milliseconds.push_back(took / 1e3);
    }
    QRM_ASSIGN_OR_RETURN(const std::string elsewhere, classes.ReadBack(container->Target(), to));
    QRM_CHECK(elsewhere.empty());
  }
  Judge(fmt::format("class of a process of {} threads changed, p50", kThreads), kTargetMilliseconds,
        Median(milliseconds), "ms");
  fmt::print("p99 {:.1f} ms of {} changes\n", Quantile(milliseconds, 0.99), moves);
  return OkStatus();
}

}  // namespace
}  // namespace qrm::bench

int main(int argc, char** argv) {
  const bool smoke = argc == 2 && std::string_view(argv[1]) == "--smoke";
  const qrm::Status measured = qrm::bench::Measure(smoke ? 1 : qrm::bench::kMoves);
  if (!measured.ok()) {
    // A machine without FUSE has nothing to measure on.
    fmt::print(stderr, "rdt_bench: {}\n", qrm::MessageOf(measured));
    return smoke && measured.code() == qrm::StatusCode::kFailedPrecondition ? EXIT_SUCCESS
                                                                            : EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
