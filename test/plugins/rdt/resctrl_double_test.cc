// The double of resctrl rejects and keeps what the kernel does, through real system calls.
#include "test/support/resctrl/resctrl_double.h"

#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/kernel/kernel_files.h"
#include "test/support/resctrl/container_cgroup.h"

namespace qrm::test::resctrl_double_test {
namespace {

using kernel::SmallFile;
using testing::HasSubstr;
using testing::StartsWith;

class ResctrlDoubleTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<ResctrlDouble>> made = ResctrlDouble::Create({.least_bits = 2});
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    resctrl_ = *std::move(made);
  }

  std::string PathOf(const std::string& name) const { return resctrl_->paths().mount + "/" + name; }
  int Write(const std::string& name, const std::string& text) const {
    SmallFile file(PathOf(name), O_WRONLY);
    if (file.error() == 0) {
      file.Write(text);
    }
    return file.error();
  }
  std::string Read(const std::string& name) const {
    SmallFile file(PathOf(name), O_RDONLY);
    return file.Read();
  }
  int Make(const std::string& name) const {
    return ::mkdir(PathOf(name).c_str(), 0755) == 0 ? 0 : errno;
  }
  std::string GroupsOf(pid_t thread) const {
    return kernel::ReadLine(resctrl_->paths().proc + "/" + std::to_string(thread) +
                            "/cpu_resctrl_groups");
  }

  std::unique_ptr<ResctrlDouble> resctrl_;
};

TEST_F(ResctrlDoubleTest, SchemataWithoutNewlineAreRejectedAndTheStatusStays) {
  EXPECT_EQ(Write("schemata", "L3:0=0\n"), EINVAL);
  EXPECT_EQ(Read("info/last_cmd_status"), "Mask out of range\n");
  EXPECT_EQ(Write("schemata", "L3:0=f"), EINVAL);
  EXPECT_EQ(Read("info/last_cmd_status"), "Mask out of range\n");
  EXPECT_EQ(Write("schemata", "L3:0=f\n"), 0);
  EXPECT_EQ(Read("info/last_cmd_status"), "ok\n");
}

TEST_F(ResctrlDoubleTest, OneWrongValueAppliesNone) {
  const std::string before = Read("schemata");
  const std::pair<const char*, const char*> refused[] = {
      {"L3:0=f;1=5\n", "The mask 5 has non-consecutive 1-bits\n"},
      {"L3:0=f;1=1\n", "Need at least 2 bits in the mask\n"},
      {"L3:0=f;1=g\n", "Non-hex character in the mask g\n"},
      {"L3:0=f;0=f\n", "Duplicate domain 0\n"},
      {"L3:0=f\nL4:0=f\n", "Unknown or unsupported resource name 'L4'\n"},
      {"L3:0=f\nMB:0=5\n", "MB value 5 out of range [10,100]\n"},
      {"L3:0=f\nMB\n", "Missing ':'\n"},
      {"L3:0=f;2=f\n", "ok\n"}};  // an id that does not exist has no text
  for (const auto& [lines, status] : refused) {
    EXPECT_EQ(Write("schemata", lines), EINVAL) << lines;
    EXPECT_EQ(Read("info/last_cmd_status"), status) << lines;
  }
  EXPECT_EQ(Read("schemata"), before);
}

TEST_F(ResctrlDoubleTest, NamesArePaddedAndBandwidthIsRoundedUp) {
  EXPECT_EQ(Write("schemata", "MB:8=11\n"), 0);
  EXPECT_EQ(Read("schemata"), "    L3:0=fffff;1=fffff;8=fffff\n    MB:0= 100;1= 100;8=  20\n");
}

TEST_F(ResctrlDoubleTest, GroupsRunOutWithTheKernelsWords) {
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g"}) {
    EXPECT_EQ(Make(name), 0) << name;
  }
  EXPECT_EQ(Make("h"), ENOSPC);
  EXPECT_EQ(Read("info/last_cmd_status"), "Out of CLOSIDs\n");
}

TEST_F(ResctrlDoubleTest, NewGroupHasWhatNoGroupHasExclusively) {
  EXPECT_EQ(Make("a"), 0);
  EXPECT_EQ(Write("schemata", "L3:0=ff;1=ff;8=ff\n"), 0);
  EXPECT_EQ(Write("a/schemata", "L3:0=ff000;1=ff000;8=ff000\n"), 0);
  EXPECT_EQ(Write("a/mode", "exclusive\n"), 0);
  EXPECT_EQ(Make("b"), 0);
  EXPECT_THAT(Read("b/schemata"), HasSubstr("L3:0=fff;1=fff;8=fff\n"));
  EXPECT_EQ(Write("b/schemata", "L3:0=fffff\n"), EINVAL);
  EXPECT_EQ(Read("info/last_cmd_status"), "Overlaps with exclusive group\n");
}

TEST_F(ResctrlDoubleTest, OnlyGroupsCanBeMadeAndRemoved) {
  EXPECT_EQ(Make("info/x"), EPERM);
  EXPECT_EQ(Make("a"), 0);
  EXPECT_EQ(Make("a/x"), EPERM);
  EXPECT_EQ(Make("a/mon_groups/m"), 0);
  EXPECT_EQ(::unlink(PathOf("a/tasks").c_str()), -1);
  EXPECT_EQ(::open(PathOf("a/new").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), -1);
  EXPECT_EQ(::rmdir(PathOf("a/mon_data").c_str()), -1);
  EXPECT_EQ(::rmdir(PathOf("a").c_str()), 0);
  EXPECT_EQ(::access(PathOf("a/tasks").c_str(), F_OK), -1);
}

TEST_F(ResctrlDoubleTest, OpenFileOfARemovedGroupIsOfNoOtherOne) {
  EXPECT_EQ(Make("a"), 0);
  SmallFile file(PathOf("a/schemata"), O_WRONLY);
  EXPECT_EQ(::rmdir(PathOf("a").c_str()), 0);
  EXPECT_EQ(Make("a"), 0);
  file.Write("L3:0=f\n");
  EXPECT_EQ(file.error(), ENODEV);
}

TEST_F(ResctrlDoubleTest, OneThreadIsMovedAndShowsItElsewhere) {
  EXPECT_EQ(Make("a"), 0);
  std::thread([&] {
    const pid_t thread = ::gettid();
    EXPECT_EQ(Write("a/tasks", std::to_string(thread) + "\n"), 0);
    EXPECT_EQ(Read("a/tasks"), std::to_string(thread) + "\n");
    EXPECT_EQ(GroupsOf(thread), "res:/a\nmon:");
    EXPECT_EQ(GroupsOf(::getpid()), "res:/\nmon:");
    EXPECT_EQ(::rmdir(PathOf("a").c_str()), 0);
    EXPECT_EQ(GroupsOf(thread), "res:/\nmon:");
  }).join();
}

TEST_F(ResctrlDoubleTest, ThreadThatIsNotThereIsRejected) {
  EXPECT_EQ(Write("tasks", "999999999\n"), ESRCH);
  EXPECT_EQ(Read("info/last_cmd_status"), "No task 999999999\n");
}

TEST_F(ResctrlDoubleTest, ChildIsWhereItsCreatorWasWhenItBegan) {
  EXPECT_EQ(Make("a"), 0);
  StatusOr<std::unique_ptr<ContainerCgroup>> container = ContainerCgroup::Create();
  ASSERT_TRUE(container.ok()) << MessageOf(container.status());
  resctrl_->Watch((*container)->directory());
  const pid_t before = (*container)->Run(Idle);
  EXPECT_EQ(Write("a/tasks", std::to_string(::getpid())), 0);
  EXPECT_THAT(GroupsOf(before), StartsWith("res:/\n"));
  // A child that begins within a millisecond of the move may count as begun before.
  std::string groups;
  for (int tries = 0; tries < 1000 && groups != "res:/a\nmon:"; ++tries) {
    groups = GroupsOf((*container)->Run(Idle));
  }
  EXPECT_EQ(groups, "res:/a\nmon:");
}

TEST_F(ResctrlDoubleTest, UnmountRemovesAllGroups) {
  EXPECT_EQ(Make("a"), 0);
  EXPECT_EQ(Write("a/tasks", std::to_string(::getpid())), 0);
  resctrl_->Unmount();
  EXPECT_EQ(::access(PathOf("schemata").c_str(), F_OK), -1);
  resctrl_->Mount();
  EXPECT_EQ(::access(PathOf("a").c_str(), F_OK), -1);
  EXPECT_EQ(GroupsOf(::getpid()), "res:/\nmon:");
}

}  // namespace
}  // namespace qrm::test::resctrl_double_test
