// What irqbalance is sent, and what it makes of it: the program itself where this machine has it,
// and a double that also fails in ways that it does not.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include <unistd.h>

#include <gmock/gmock.h>

#include "plugins/kernel/interrupts.h"
#include "plugins/kernel/kernel_values.h"
#include "test/plugins/kernel/irqbalance_double.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/is_ok.h"
#include "test/support/manual_clock.h"
#include "test/support/temp_dir.h"

namespace qrm::kernel::irqbalance_test {
namespace {

using std::chrono::seconds;
using test::IrqbalanceDouble;
using test::IsOk;
using testing::HasSubstr;

class IrqbalanceTest : public testing::Test {
 protected:
  IrqbalanceTest() {
    Write("proc/sys/kernel/random/boot_id", "first");
    Write("sys/devices/system/cpu/online", "0-7");
    Write("proc/" + IrqbalanceDouble::Process() + "/comm", "irqbalance");
  }
  void Write(const std::string& path, const std::string& value) const {
    const std::filesystem::path file(dir_ / path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << value << '\n';
  }
  /// As a new process of the driver, which knows the journal.
  void Start() {
    knobs_.reset();
    files_ = std::make_unique<BalancerFiles>(system_, dir_.path(), clock_);
    knobs_ = *KernelValues::Open(*files_, dir_ / "knobs.json");
    RepeatBans(*files_, knobs_->records());
  }
  Status Ban(const std::string& owner, const std::string& cpus) {
    return knobs_->Hold(owner, {{path_, ClaimForm::kCpuUnion, cpus}}).status();
  }
  std::string Shown() const {
    const auto shown = files_->Read(path_);
    return shown.ok() ? *shown : MessageOf(shown.status());
  }

  const test::TempDir dir_ = test::TempDir::InMemory();
  test::ManualClock clock_;
  SystemFiles system_{dir_.path()};
  const std::string path_ = BanFile(IrqbalanceDouble::Process());
  std::unique_ptr<BalancerFiles> files_;
  std::unique_ptr<KernelValues> knobs_;
};

TEST_F(IrqbalanceTest, TheBansOfAllOwnersAreSentTogetherAndEndWithTheLast) {
  IrqbalanceDouble balancer(dir_.path());
  Start();
  EXPECT_THAT(FindBalancers(*files_), testing::ElementsAre(IrqbalanceDouble::Process()));
  EXPECT_TRUE(files_->MayWrite(path_));
  ASSERT_TRUE(IsOk(Ban("a", "2-3")));
  ASSERT_TRUE(IsOk(Ban("b", "5,40")));
  EXPECT_EQ(balancer.told(), "2-3,5,40") << "each message forgets those before";
  balancer.Balance();
  EXPECT_EQ(Shown(), "2-3,5,40");
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(balancer.told(), "5,40");
  ASSERT_TRUE(IsOk(knobs_->Release("b")));
  EXPECT_EQ(balancer.told(), "") << "its own configuration counts again";
}

TEST_F(IrqbalanceTest, EarlierBansStayAndComeBack) {
  IrqbalanceDouble balancer(dir_.path());
  Start();
  ASSERT_TRUE(IsOk(files_->Write(path_, "7")));
  balancer.Balance();
  ASSERT_TRUE(IsOk(Ban("a", "2")));
  EXPECT_EQ(balancer.told(), "2,7");
  balancer.Balance();
  ASSERT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_EQ(balancer.told(), "7");
}

TEST_F(IrqbalanceTest, ABanThatADriverSentRightBeforeItWasKilledDoesNotStay) {
  IrqbalanceDouble balancer(dir_.path());
  Start();
  ASSERT_TRUE(IsOk(Ban("a", "2")));
  Start();  // while it still reports no bans
  ASSERT_TRUE(IsOk(knobs_->KeepOnly({})));
  EXPECT_EQ(balancer.told(), "");
}

TEST_F(IrqbalanceTest, ABanThatAnotherProcessSetSinceStays) {
  IrqbalanceDouble balancer(dir_.path());
  Start();
  ASSERT_TRUE(IsOk(Ban("a", "2")));
  ASSERT_TRUE(IsOk(files_->Write(path_, "4")));
  balancer.Balance();
  Start();
  ASSERT_TRUE(IsOk(knobs_->KeepOnly({})));
  EXPECT_EQ(balancer.told(), "4");
}

TEST_F(IrqbalanceTest, ABalancerThatIgnoresBansIsReported) {
  const IrqbalanceDouble balancer(dir_.path());
  Start();
  ASSERT_TRUE(IsOk(Ban("a", "2")));
  clock_.Advance(seconds(19));
  EXPECT_TRUE(IsOk(Ban("a", "2"))) << "it has not balanced yet";
  clock_.Advance(seconds(2));
  EXPECT_EQ(Shown(), "");
  EXPECT_THAT(MessageOf(Ban("a", "2")), HasSubstr("it bans none instead; restart it"));
}

TEST_F(IrqbalanceTest, TheAbstractSocketOfAnOldOneIsFound) {
  const IrqbalanceDouble balancer(dir_.path(), IrqbalanceDouble::Place::kAbstract);
  Start();
  ASSERT_TRUE(IsOk(Ban("a", "2")));
  EXPECT_EQ(balancer.told(), "2");
}

TEST_F(IrqbalanceTest, ABalancerThatIsGoneHasNothingToRestore) {
  {
    const IrqbalanceDouble balancer(dir_.path());
    Start();
    ASSERT_TRUE(IsOk(Ban("a", "2")));
  }
  EXPECT_THAT(MessageOf(knobs_->Release("a")), HasSubstr("Connection refused")) << "it still runs";
  Write("proc/" + IrqbalanceDouble::Process() + "/comm", "bash");
  EXPECT_TRUE(IsOk(knobs_->Release("a")));
  EXPECT_TRUE(knobs_->records().empty());
}

// The program dies when it answers a client that is gone.
TEST_F(IrqbalanceTest, ABusyBalancerIsNotWaitedForAndLives) {
  IrqbalanceDouble balancer(dir_.path());
  Start();
  balancer.Hang();
  EXPECT_FALSE(files_->MayWrite(path_));
  EXPECT_THAT(MessageOf(Ban("a", "2")), HasSubstr("cannot connect to irqbalance (process "));
  balancer.Resume();
  EXPECT_TRUE(IsOk(Ban("a", "2")));
  EXPECT_FALSE(balancer.is_dead());
}

TEST_F(IrqbalanceTest, ADriverThatEndsWaitsForItsRequests) {
  IrqbalanceDouble balancer(dir_.path());
  Start();
  balancer.Hang();
  EXPECT_FALSE(files_->MayWrite(path_));
  std::atomic<bool> ended = false;
  std::thread end([&] {
    knobs_.reset();
    files_.reset();
    ended = true;
  });
  EXPECT_FALSE(test::Await([&] { return ended.load(); }, std::chrono::milliseconds(50)));
  balancer.Resume();
  end.join();
  EXPECT_FALSE(balancer.is_dead());
}

TEST_F(IrqbalanceTest, ABalancerWithAnUnknownAnswerGetsNoBans) {
  IrqbalanceDouble balancer(dir_.path());
  balancer.is_mad = true;
  Start();
  EXPECT_FALSE(files_->MayWrite(path_));
  EXPECT_THAT(Shown(), HasSubstr("unknown answer '"));
  EXPECT_THAT(Shown(), Not(HasSubstr("\x1b")));
}

// A process with the name irqbalance may have a socket of another user at that path.
TEST_F(IrqbalanceTest, ASocketOfAnotherProcessIsNotSpokenWith) {
  const IrqbalanceDouble balancer(dir_.path());
  Start();
  const std::string other = BanFile("1");
  Write("proc/1/comm", "irqbalance");
  std::filesystem::create_directories(std::filesystem::path(dir_ / other).parent_path());
  std::filesystem::create_symlink(dir_ / path_, dir_ / other);
  EXPECT_FALSE(files_->MayWrite(other));
}

TEST_F(IrqbalanceTest, AListThatItWouldCutIsRejected) {
  const IrqbalanceDouble balancer(dir_.path());
  Start();
  CpuSet scattered;
  for (int cpu = 0; cpu < 512; cpu += 2) {
    scattered.Add(cpu);
  }
  EXPECT_THAT(MessageOf(Ban("a", ToString(scattered))), HasSubstr("it accepts only shorter lists"));
  EXPECT_EQ(balancer.told(), "");
}

std::string FindProgram() {
  const char* const path_variable = ::getenv("PATH");
  std::istringstream places(std::string(path_variable == nullptr ? "" : path_variable) +
                            ":/usr/sbin");
  for (std::string place; std::getline(places, place, ':');) {
    if (const std::string path = place + "/irqbalance"; ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return "";
}

// In a separate mount namespace, where it finds no interrupts to move and has a private /run.
TEST(RealIrqbalanceTest, TakesUpABanAndGoesBackToItsConfiguration) {
  const std::string program = FindProgram();
  if (program.empty() || ::geteuid() != 0) {
    GTEST_SKIP() << "needs root and the program irqbalance, of the package of that name";
  }
  const test::TempDir dir;
  const test::ChildProcess child(
      {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
       "mount -t tmpfs none /proc/irq && mount -t tmpfs none /run && mkdir /run/irqbalance && "
       "IRQBALANCE_BANNED_CPULIST=1 exec " +
           program + " --foreground --interval=1"},
      dir / "log");
  SystemFiles system("/");
  const SystemClock clock;
  BalancerFiles files(system, "/", clock);
  const std::string path = BanFile(std::to_string(child.pid()));
  const auto shows = [&](const std::string& cpus) {
    return test::Await(
        [&] { return BalancerFiles(system, "/", clock).Read(path).value_or("") == cpus; });
  };
  if (!test::Await([&] { return files.MayWrite(path); })) {
    GTEST_SKIP() << "irqbalance does not run here: " << child.Output();
  }
  EXPECT_THAT(FindBalancers(files), testing::Contains(std::to_string(child.pid())));
  EXPECT_TRUE(shows("1"));
  ASSERT_TRUE(IsOk(files.Write(path, "0-1")));
  EXPECT_EQ(files.Read(path).value_or(""), "0-1") << "before it balances next";
  EXPECT_TRUE(shows("0-1"));
  ASSERT_TRUE(IsOk(files.Write(path, "0")));
  EXPECT_TRUE(shows("0")) << "bans before are forgotten";
  ASSERT_TRUE(IsOk(files.Write(path, "")));
  EXPECT_TRUE(shows("1")) << "its configuration counts again";
}

}  // namespace
}  // namespace qrm::kernel::irqbalance_test
