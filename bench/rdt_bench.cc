// The time to change the class of a running process of many threads, on the double of resctrl,
// against the file operations that no program can do without.
//   rdt_bench [--smoke]
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/check.h"
#include "bench/target.h"
#include "plugins/rdt/rdt_classes.h"
#include "plugins/rdt/resctrl.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/resctrl/resctrl_double.h"
#include "test/support/temp_dir.h"

namespace qrm::bench {
namespace {

constexpr double kTargetRatio = 1.5;
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

/// The least that moves `threads` to the root group and proves it: one list, and the file of each
/// thread.
void MoveToRoot(const rdt::ResctrlPaths& paths, const std::vector<pid_t>& threads) {
  std::ofstream(paths.mount + "/tasks") << fmt::format("{}\n", fmt::join(threads, ","));
  for (const pid_t thread : threads) {
    const std::string path = fmt::format("{}/{}/cpu_resctrl_groups", paths.proc, thread);
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char text[64];
    QRM_CHECK(file >= 0 && ::read(file, text, sizeof(text)) > 0);
    ::close(file);
    QRM_CHECK(std::string_view(text).starts_with("res:/\n"));
  }
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

  const std::vector<pid_t> threads = container->Threads();
  std::vector<double> changes;
  std::vector<double> floors;
  for (int move = -1; move < moves; ++move) {  // the first fills the file system's caches
    const std::string to = move % 2 == 0 ? "silver" : "gold";
    Status applied;
    const double change =
        MicrosecondsOf([&] { applied = classes.Apply(container->Target(), "", to); });
    QRM_RETURN_IF_ERROR(applied);
    QRM_ASSIGN_OR_RETURN(const std::string elsewhere, classes.ReadBack(container->Target(), to));
    QRM_CHECK(elsewhere.empty());
    const double floor = MicrosecondsOf([&] { MoveToRoot(resctrl->paths(), threads); });
    if (move >= 0) {
      changes.push_back(change / 1e3);
      floors.push_back(floor / 1e3);
    }
  }
  Judge(fmt::format("class of a process of {} threads changed, p50", kThreads), kTargetRatio,
        Median(changes) / Median(floors), "x floor");
  fmt::print("change p50 {:.1f} ms, p99 {:.1f} ms; floor p50 {:.1f} ms; {} times\n",
             Median(changes), Quantile(changes, 0.99), Median(floors), moves);
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
