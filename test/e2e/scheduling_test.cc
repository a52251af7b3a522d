// How the kernel schedules the daemon's threads.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

#include "manager/realtime.h"
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

TEST(RealtimePriorityTest, AllThreadsOfTheDaemonHaveIt) {
  if (!MayRunInRealTime()) {
    GTEST_SKIP() << "needs CAP_SYS_NICE";
  }
  const TempDir dir;
  const SimulatedRuntime runtime(dir.path());
  Node node({.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
             .work_dir = dir / "node",
             .config = "docs/samples/example2/qrmd.yaml",
             .nri_socket = runtime.nri_socket(),
             .cri_socket = runtime.cri_socket(),
             .builtin_plugins = "cpu",
             .flags = {"--realtime-priority=2"}});
  ASSERT_TRUE(IsOk(node.Start(1)));

  const std::string tasks = "/proc/" + std::to_string(node.daemon_pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    const pid_t thread = std::atoi(task.path().filename().c_str());
    sched_param param = {};
    ASSERT_EQ(::sched_getparam(thread, &param), 0);
    EXPECT_EQ(param.sched_priority, 2) << "thread " << thread;
  }
}

}  // namespace
}  // namespace qrm::test
