// Attributes of a whole container, on threads of this machine.
#include <memory>
#include <string>
#include <vector>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "api/base/cgroup.h"
#include "plugins/cci/cci_driver.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/kernel/kernel_values.h"
#include "plugins/kernel/thread_attributes.h"
#include "test/plugins/kernel/nasty_files.h"
#include "test/support/is_ok.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::cci::scheduling_test {
namespace {

using test::ContainerCgroup;
using test::IsOk;
using testing::Each;
using testing::HasSubstr;

constexpr char kCgroups[] = "/sys/fs/cgroup";
const ContainerKey kKey{"uid", "main"};

/// A container that the driver was asked to admit, and whose process exists.
class SchedulingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = ContainerCgroup::Create();
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    container_ = *std::move(made);
    Start();
  }
  /// As a new process.
  void Start() {
    driver_.reset();
    driver_ = std::make_unique<CciDriver>(
        *Discover(*MachineSource::Parse("synthetic:package:1 core:4 pu:1")), Policies(), files_,
        *kernel::KernelValues::Open(files_, dir_ / "knobs.json"), FindScheduling(kCgroups));
  }
  StatusOr<sdk::ComputeGrant> Admit(const std::string& attributes) {
    return driver_->Admit({.key = kKey,
                           .spec = "{cores: '*', container_attributes: '" + attributes + "'}",
                           .available = CpuSet::Range(1, 3),
                           .milli_cpus = 1000});
  }
  Status Add() {
    return driver_->Add({.key = kKey,
                         .container_id = "c1",
                         .cgroup = std::string(CgroupPath(container_->Target().cgroups_path))});
  }
  std::vector<std::string> Values(const std::string& attribute) const {
    std::vector<std::string> values;
    for (const pid_t thread : container_->Threads()) {
      values.push_back(kernel::ReadAttribute(attribute, thread).value_or("gone"));
    }
    return values;
  }

  const test::TempDir dir_ = test::TempDir::InMemory();
  test::NastyFiles files_;
  std::unique_ptr<ContainerCgroup> container_;
  std::unique_ptr<CciDriver> driver_;
};

TEST_F(SchedulingTest, AllThreadsOfTheContainerHaveWhatItAskedForAndInheritIt) {
  container_->Run([] { test::ForkStorm(2); });
  const auto grant = Admit("sched=batch, nice=5");
  ASSERT_TRUE(IsOk(grant.status()));
  EXPECT_EQ(grant->envs.at("CCI_CONTAINER"), "sched=batch, nice=5");
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_EQ(kernel::FindOtherValues(container_->directory(),
                                    {{kernel::kNice, "5"}, {kernel::kPolicy, "batch"}})
                .value_or("error"),
            "");
}

TEST_F(SchedulingTest, ADriverThatWasStartedAgainKnowsWhatTheContainerHas) {
  container_->Run([] { test::Idle(); });
  const auto grant = Admit("nice=7");
  ASSERT_TRUE(IsOk(grant.status()));
  Start();
  ASSERT_TRUE(IsOk(driver_->Restore({{kKey, *grant}})));
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_THAT(Values(kernel::kNice), Each("7"));
}

TEST_F(SchedulingTest, AContainerThatSaysNothingIsNotChanged) {
  container_->Run([] { test::Idle(); });
  ASSERT_TRUE(IsOk(driver_->Admit({.key = kKey, .available = {1}, .milli_cpus = 1000}).status()));
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_THAT(Values(kernel::kNice), Each("0"));
}

TEST_F(SchedulingTest, RealTimeIsGivenOrRejectedBeforeTheAdmission) {
  container_->Run([] { test::Idle(); });
  const auto grant = Admit("sched=fifo:3");
  if (FindScheduling(kCgroups).HasFile("cpu.rt_runtime_us")) {
    EXPECT_THAT(MessageOf(grant.status()), HasSubstr("needs a real-time budget"));
    return;
  }
  ASSERT_TRUE(IsOk(grant.status()));
  ASSERT_TRUE(IsOk(Add()));
  EXPECT_THAT(Values(kernel::kPolicy), Each("fifo 3"));
}

TEST_F(SchedulingTest, AContainerThatIsGoneFailsItsStart) {
  ASSERT_TRUE(IsOk(Admit("nice=7").status()));
  EXPECT_THAT(MessageOf(driver_->Add({.key = kKey, .cgroup = "/no-such-cgroup"})),
              HasSubstr("/no-such-cgroup: the cgroup is gone"));
}

/// In a separate process, which has all rights except to schedule others' threads.
int AskWithoutRights() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) {
    return 2;
  }
  data[0].effective &= ~(1U << static_cast<unsigned>(CAP_SYS_NICE));
  if (::syscall(SYS_capset, &header, data) != 0) {
    return 2;
  }
  std::vector<sdk::UnmetWish> unmet;
  const auto asked = *ParseAttributes("nice=5?", AttributeScope::kContainer);
  const auto kept = ChooseScheduling(asked, {}, unmet);
  const auto required = *ParseAttributes("nice=5", AttributeScope::kContainer);
  const bool is_said = kept.ok() && kept->empty() && unmet.size() == 1 &&
                       unmet[0].reason.find("CAP_SYS_NICE") != std::string::npos &&
                       !ChooseScheduling(required, {}, unmet).ok();
  return is_said ? 0 : 1;
}

TEST(SchedulingRightsTest, ADriverThatMayNotSetOthersSchedulingSaysSo) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(AskWithoutRights());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace qrm::cci::scheduling_test
