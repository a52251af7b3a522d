// How the kernel schedules the daemon's threads.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/number.h"
#include "manager/daemon/process/priority.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/e2e/usable_cpus.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::scheduling_test {
namespace {

using testing::Each;
using testing::Pair;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int kOnTheWay = 3;  // main, the I/O loop and the state loop

bool MayRaisePriority() {
  bool may = false;
  std::thread([&] { may = manager::RunWith({.nice = -20, .realtime = 1}).ok(); }).join();
  return may;
}

int RealTimePriorityOf(pid_t thread) {
  sched_param param = {};
  return ::sched_getparam(thread, &param) == 0 ? param.sched_priority : -1;
}

int NicenessOf(pid_t thread) {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
}

int CountOf(const std::map<int, int>& threads) {
  int count = 0;
  for (const auto& [value, number] : threads) {
    count += number;
  }
  return count;
}

/// The CPU that the thread stays on; -1 when it may run on several.
int CpuOf(pid_t thread) {
  cpu_set_t set;
  if (::sched_getaffinity(thread, sizeof(set), &set) != 0 || CPU_COUNT(&set) != 1) {
    return -1;
  }
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) {
    ++cpu;
  }
  return cpu;
}

/// A daemon with one built-in plugin, which has reserved the first CPU of this machine.
class SchedulingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MayRaisePriority()) {
      GTEST_SKIP() << "needs CAP_SYS_NICE";
    }
    std::ofstream(dir_ / "qrmd.yaml")
        << "plugins: {cpu: {reserved-cpus: \"" << reserved_ << "\"}}\n";
  }

  void Start(const std::vector<std::string>& flags) {
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu",
                      .flags = flags});
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }

  /// The number of the daemon's threads by the value that `value_of` reports.
  std::map<int, int> Threads(const std::function<int(pid_t)>& value_of) const {
    std::map<int, int> threads;
    const std::string tasks = "/proc/" + std::to_string(node_->daemon_pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      ++threads[value_of(ParseNumber<pid_t>(task.path().filename().string()).value_or(0))];
    }
    return threads;
  }

  /// Threads get their priority when they run for the first time, which may be after qrmd's
  /// readiness.
  bool ComeToHave(const std::function<int(pid_t)>& value_of, int value) const {
    return Await([&] { return Threads(value_of)[value] == kOnTheWay; });
  }

  /// The number of heaps of the daemon, which its allocator reports when it ends.
  int HeapsAfter(const std::vector<std::string>& flags) {
    EXPECT_EQ(::setenv("MALLOC_CONF", "stats_print:true", 1), 0);
    Start(flags);
    EXPECT_TRUE(IsOk(node_->Stop()));
    ::unsetenv("MALLOC_CONF");
    std::ifstream log(dir_ / "node/logs/qrmd.log");
    int heaps = 0;
    for (std::string line; std::getline(log, line);) {
      heaps += line.starts_with("arenas[") ? 1 : 0;
    }
    return heaps;
  }

  const TempDir dir_;
  const int reserved_ = *UsableCpus().begin();
  const SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(SchedulingTest, ThreadsOnAContainersWayAreNiceAndTheOthersAreNot) {
  Start({});
  EXPECT_TRUE(ComeToHave(NicenessOf, -20));
  EXPECT_GT(CountOf(Threads(NicenessOf)), 2 * kOnTheWay);
  EXPECT_EQ(Threads(NicenessOf)[-20], kOnTheWay);
  EXPECT_THAT(Threads(RealTimePriorityOf), Each(Pair(0, testing::_)));
}

TEST_F(SchedulingTest, NicenessIsWhatTheFlagSays) {
  Start({"--nice=-7"});
  EXPECT_TRUE(ComeToHave(NicenessOf, -7));
}

TEST_F(SchedulingTest, NicenessOfNoneLeavesAllThreadsOrdinary) {
  Start({"--nice=0"});
  EXPECT_THAT(Threads(NicenessOf), Each(Pair(NicenessOf(0), testing::_)));  // that of this process
}

TEST_F(SchedulingTest, ThreadsOnAContainersWayRunInRealTimeWhenThatIsAskedFor) {
  Start({"--realtime-priority=2"});
  EXPECT_TRUE(ComeToHave(RealTimePriorityOf, 2));
  EXPECT_GT(Threads(RealTimePriorityOf)[0], kOnTheWay);
}

TEST_F(SchedulingTest, ThreadsInRealTimeShareNoHeapWithOthers) {
  if (kSanitized) {
    GTEST_SKIP() << "sanitizers have heaps of their own";
  }
  EXPECT_EQ(HeapsAfter({"--realtime-priority=2"}), 1 + kOnTheWay);
}

TEST_F(SchedulingTest, OrdinaryThreadsShareOneHeapExceptTheIoLoop) {
  if (kSanitized) {
    GTEST_SKIP() << "sanitizers have heaps of their own";
  }
  EXPECT_EQ(HeapsAfter({}), 2);
}

TEST_F(SchedulingTest, AllThreadsStayOnTheReservedCpus) {
  Start({});
  EXPECT_THAT(Threads(CpuOf), Each(Pair(reserved_, testing::_)));
}

}  // namespace
}  // namespace qrm::test::scheduling_test
