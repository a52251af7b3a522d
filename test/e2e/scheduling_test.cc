// How the kernel schedules the daemon's threads.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/daemon/realtime.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

bool MayRunInRealTime() {
  bool may = false;
  std::thread([&] { may = manager::RunInRealTime(1).ok(); }).join();
  return may;
}

/// How many threads of a daemon with one built-in plugin have which priority.
std::map<int, int> PrioritiesWith(const std::vector<std::string>& flags) {
  const TempDir dir;
  const SimulatedRuntime runtime(dir.path());
  Node node({.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
             .work_dir = dir / "node",
             .config = "docs/samples/example2/qrmd.yaml",
             .nri_socket = runtime.nri_socket(),
             .cri_socket = runtime.cri_socket(),
             .builtin_plugins = "cpu",
             .flags = flags});
  EXPECT_TRUE(IsOk(node.Start(1)));
  std::map<int, int> threads;
  const std::string tasks = "/proc/" + std::to_string(node.daemon_pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    sched_param param = {};
    if (::sched_getparam(std::atoi(task.path().filename().c_str()), &param) == 0) {
      ++threads[param.sched_priority];
    }
  }
  return threads;
}

class RealtimePriorityTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!MayRunInRealTime()) {
      GTEST_SKIP() << "needs CAP_SYS_NICE";
    }
  }
};

constexpr int kOnTheWay = 4;  // main, the I/O loop, the state loop and the plugin's thread

TEST_F(RealtimePriorityTest, ThreadsOnAContainersWayHaveItAndTheOthersDoNot) {
  const std::map<int, int> threads = PrioritiesWith({});
  EXPECT_EQ(threads.at(1), kOnTheWay);
  EXPECT_GT(threads.at(0), kOnTheWay);
}

TEST_F(RealtimePriorityTest, IsWhatTheFlagSays) {
  EXPECT_EQ(PrioritiesWith({"--realtime-priority=2"}).at(2), kOnTheWay);
}

TEST_F(RealtimePriorityTest, NoneLeavesAllThreadsOrdinary) {
  EXPECT_THAT(PrioritiesWith({"--realtime-priority=0"}), testing::ElementsAre(testing::Key(0)));
}

}  // namespace
}  // namespace qrm::test
