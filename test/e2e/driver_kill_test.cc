// kill -9 of qrmd and of compute drivers at any moment of a container's life, on a simulated
// runtime. With QRM_DRIVER_KILLS=1 it is killed at each of its writes, else at every other one.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "test/e2e/driver_node.h"
#include "test/e2e/process.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"

namespace qrm::test::driver_kill_test {
namespace {

class DriverKillTest : public testing::Test, protected DriverNode {
 protected:
  /// While it exists, programs that are started die at that write of their own; none at -1.
  class Death {
   public:
    Death(const std::string& bin, int write) {
      ::setenv("QRM_DIE_AT_WRITE", std::to_string(write).c_str(), 1);
      ::setenv("LD_PRELOAD", (bin + "/libqrm-die-at-write.so").c_str(), 1);
    }
    ~Death() {
      ::unsetenv("LD_PRELOAD");
      ::unsetenv("QRM_DIE_AT_WRITE");
    }
    Death(const Death&) = delete;
    Death& operator=(const Death&) = delete;
  };

  void RestartDaemon() {
    node().KillDaemon();
    ASSERT_TRUE(IsOk(node().Start(3)));
  }
  bool NobodyHasAnything() {
    return Await([&] { return State().find("uid-") == std::string::npos; });
  }
  /// The driver can give all CPUs except the one that the pool keeps, and then all are the pool's.
  void ExpectAllFree(const std::string& driver_name) {
    ASSERT_TRUE(NobodyHasAnything()) << State();
    ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("four", 4, driver_name))));
    ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("two", 2, driver_name))));
    ASSERT_TRUE(IsOk(runtime.RemovePod("four")));
    ASSERT_TRUE(IsOk(runtime.RemovePod("two")));
    ASSERT_TRUE(NobodyHasAnything()) << State();
    ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
    EXPECT_EQ(Cpus("plain"), "1-7");
    ASSERT_TRUE(IsOk(runtime.RemovePod("plain")));
  }
  std::unique_ptr<Process> StartRoundRobin(int dies_at_write = -1) {
    const Death death(bin(), dies_at_write);
    auto process = Process::Start(
        {bin() + "/qrm-example-round-robin-driver", "--plugins-registry-dir",
         dir() / "node/plugins", "--state-dir", dir() / "state", "--control-socket", ""},
        dir() / "driver.log");
    EXPECT_TRUE(IsOk(process.status()));
    EXPECT_TRUE(Await([&] { return !(*process)->Running() || IsLive("cci.qrm.io/round-robin"); }));
    return *std::move(process);
  }
};

TEST_F(DriverKillTest, ARunningContainerIsReportedAgainWhenItsStartMayHaveBeenMissed) {
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  const std::string add = driver->calls().back();
  EXPECT_TRUE(add.starts_with("add ")) << add;
  const auto times_told = [&] {
    const auto calls = driver->calls();
    return std::count(calls.begin(), calls.end(), add);
  };
  RestartDaemon();
  EXPECT_TRUE(Await([&] { return times_told() >= 2; })) << "qrmd was not running";
  StopDriver();
  StartDriver(GiveLast);
  EXPECT_TRUE(Await([&] { return times_told() == 1; })) << "the driver was not running";
}

class CallTest : public DriverKillTest, public testing::WithParamInterface<const char*> {};

TEST_P(CallTest, LeavesNothingOfAPodThatIsRemovedMeanwhileWhenTheDaemonDies) {
  std::atomic<bool> kills = true;
  on_call = [&](std::string_view call) {
    if (call == GetParam() && kills.exchange(false)) {
      ::kill(node().daemon_pid(), SIGKILL);
    }
  };
  StartDriver(GiveLast);
  (void)runtime.RunPod(DriverPod("web", 2));  // a runtime goes on without an answer
  (void)runtime.RemovePod("web");
  ASSERT_TRUE(Await([&] { return !node().DaemonRuns(); }));
  RestartDaemon();
  ExpectAllFree("scripted");
}

TEST_P(CallTest, LeavesNothingOfAPodThatIsRemovedMeanwhileWhenTheDriverDies) {
  std::atomic<bool> dies = true;
  std::binary_semaphore called(0);
  std::binary_semaphore dead(0);
  on_call = [&](std::string_view call) {
    if (call == GetParam() && dies.exchange(false)) {
      called.release();
      dead.acquire();
    }
  };
  StartDriver(GiveLast);
  std::thread killer([&] {
    called.acquire();
    driver.reset();
  });
  (void)runtime.RunPod(DriverPod("web", 2));
  (void)runtime.RemovePod("web");
  ASSERT_TRUE(Await([&] { return !IsLive(kScriptedDriver); })) << Plugins();
  dead.release();
  killer.join();
  StartDriver(GiveLast);
  ExpectAllFree("scripted");
}

INSTANTIATE_TEST_SUITE_P(Each, CallTest, testing::Values("admit", "add", "remove"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST_F(DriverKillTest, OfTheDaemonAtAnyOfItsWritesGivesEachCpuToOneAndLosesNone) {
  constexpr int kWrites = 20;  // a start takes 8, an admission 6, a removal about as many
  // A commit takes two writes, one after the other: the kill meets one of them, however many writes
  // the start took.
  const int step = std::getenv("QRM_DRIVER_KILLS") != nullptr ? 1 : 2;
  StartDriver(GiveLast);
  int died_at_work = 0;
  for (int write = 0; write < kWrites; write += step) {
    SCOPED_TRACE(write);
    node().KillDaemon();
    const bool started = [&] {
      const Death death(bin(), write);
      return node().Start(3).ok();
    }();
    const bool runs = started && runtime.RunPod(DriverPod("web", 2)).ok();
    const bool ends_before = write / step % 2 == 0;
    if (runs && ends_before) {
      (void)runtime.RemovePod("web");
    }
    if (started && !runs) {
      ++died_at_work;
      ASSERT_TRUE(Await([&] { return !node().DaemonRuns(); })) << "it rejected the pod";
    }
    ASSERT_NO_FATAL_FAILURE(RestartDaemon());
    if (runs && !ends_before) {
      ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("other", 1))));
      EXPECT_FALSE(
          CpuSet::Parse(Cpus("other"))->Intersects(CpuSet::Parse(Cpus("web")).value_or(CpuSet())))
          << Cpus("other") << " and " << Cpus("web");
      ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
      ASSERT_TRUE(IsOk(runtime.RemovePod("other")));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAllFree("scripted"));
  }
  EXPECT_GT(died_at_work, 0);
}

TEST_F(DriverKillTest, OfADriverOnTheSdkAtAnyOfItsWritesLosesNothing) {
  constexpr int kWrites = 16;  // more than a start, an admission and a removal take
  int died_at_work = 0;
  for (int write = 0; write < kWrites; ++write) {
    SCOPED_TRACE(write);
    auto process = StartRoundRobin(write);
    const bool started = process->Running();
    if (runtime.RunPod(DriverPod("web", 2, "round-robin")).ok()) {
      ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
    }
    if (started) {
      (void)Await([&] { return !process->Running() || State().find("uid-") == std::string::npos; });
    }
    died_at_work += started && !process->Running() ? 1 : 0;
    process->Kill();
    ASSERT_TRUE(Await([&] { return !IsLive("cci.qrm.io/round-robin"); })) << Plugins();
    process = StartRoundRobin();
    ASSERT_TRUE(process->Running()) << process->LastOutput();
    ASSERT_NO_FATAL_FAILURE(ExpectAllFree("round-robin"));
    process->Kill();
    ASSERT_TRUE(Await([&] { return !IsLive("cci.qrm.io/round-robin"); })) << Plugins();
  }
  EXPECT_GT(died_at_work, 0);
}

}  // namespace
}  // namespace qrm::test::driver_kill_test
