#include "manager/kubelet/kubelet_policy.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/file_descriptor.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::kubelet_policy_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Lt;
using testing::Pair;
using testing::SizeIs;

class KubeletPolicyTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::remove(dir_ / name);
    std::ofstream(dir_ / name) << text;
  }

  test::TempDir dir_;
  KubeletPolicy policy_{dir_.path()};
};

TEST_F(KubeletPolicyTest, NodeWithoutKubeletIsOurs) {
  EXPECT_THAT(policy_.Conflicts(), IsEmpty());
  EXPECT_THAT(KubeletPolicy("").Conflicts(), IsEmpty());
}

TEST_F(KubeletPolicyTest, PolicyNoneIsNotAConflict) {
  Write("cpu_manager_state", R"({"policyName":"none","defaultCpuSet":"","checksum":1353318690})");
  Write("memory_manager_state", R"({"policyName":"None","machineState":{},"checksum":4})");
  EXPECT_THAT(policy_.Conflicts(), IsEmpty());
}

TEST_F(KubeletPolicyTest, StaticManagersAreNamedWithTheRemedy) {
  Write("cpu_manager_state",
        R"({"policyName":"static","defaultCpuSet":"0,2-7","entries":{"u":{"c":"1"}}})");
  EXPECT_THAT(
      policy_.Conflicts(),
      ElementsAre(Pair("cpu", AllOf(HasSubstr("CPU manager"), HasSubstr(dir_ / "cpu_manager_state"),
                                    HasSubstr("cpuManagerPolicy: none")))));
  Write("memory_manager_state", R"({"policyName":"Static"})");
  EXPECT_THAT(policy_.Conflicts(), SizeIs(2));
  EXPECT_THAT(policy_.Conflicts()["memory"], HasSubstr("memoryManagerPolicy: None"));
}

TEST_F(KubeletPolicyTest, FollowsTheRemedy) {
  Write("cpu_manager_state", R"({"policyName":"static"})");
  EXPECT_THAT(policy_.Conflicts(), SizeIs(1));
  std::filesystem::remove(dir_ / "cpu_manager_state");
  EXPECT_THAT(policy_.Conflicts(), IsEmpty());
  Write("cpu_manager_state", R"({"policyName":"none"})");
  EXPECT_THAT(policy_.Conflicts(), IsEmpty());
}

TEST_F(KubeletPolicyTest, WhatIsNotAStateIsNotAConflict) {
  for (const char* text : {"", "{", "[]", "3", R"({"policyName":3})", R"({"policyName":"static)"}) {
    Write("cpu_manager_state", text);
    EXPECT_THAT(policy_.Conflicts(), IsEmpty()) << text;
  }
  std::filesystem::create_directory(dir_ / "memory_manager_state");
  EXPECT_THAT(policy_.Conflicts(), IsEmpty());
}

TEST_F(KubeletPolicyTest, WatchStandsAsideUntilKubeletPinsNoLonger) {
  using News = KubeletWatch::News;
  KubeletWatch watch(dir_.path(), [](const std::string&) { return true; });
  EXPECT_EQ(watch.Look(), News::kNone);
  EXPECT_FALSE(watch.stands_aside());
  Write("cpu_manager_state", R"({"policyName":"static"})");
  EXPECT_EQ(watch.Look(), News::kNone);
  EXPECT_TRUE(watch.stands_aside());
  EXPECT_THAT(watch.conflicts(), ElementsAre(HasSubstr("cpuManagerPolicy: none")));
  std::filesystem::remove(dir_ / "cpu_manager_state");
  EXPECT_EQ(watch.Look(), News::kFree);
  EXPECT_EQ(watch.Look(), News::kNone) << "reported once, when it changed";
  EXPECT_FALSE(watch.stands_aside());
  EXPECT_THAT(watch.conflicts(), IsEmpty());
}

TEST_F(KubeletPolicyTest, WatchStandsAsideOnlyWhileAPluginServesWhatKubeletPins) {
  using News = KubeletWatch::News;
  bool serves_cpus = false;
  KubeletWatch watch(dir_.path(), [&](const std::string& resource) {
    return resource == "nic" || (resource == "cpu" && serves_cpus);
  });
  Write("cpu_manager_state", R"({"policyName":"static"})");
  EXPECT_EQ(watch.Look(), News::kNone);
  EXPECT_FALSE(watch.stands_aside());
  EXPECT_THAT(watch.conflicts(), IsEmpty());
  serves_cpus = true;
  EXPECT_TRUE(watch.stands_aside()) << "at once, without another look";
  EXPECT_EQ(watch.Look(), News::kNone);
  serves_cpus = false;
  EXPECT_FALSE(watch.stands_aside());
  EXPECT_EQ(watch.Look(), News::kFree);
}

/// A file that is removed from its directory but still visible, as through a mount of the file.
class ReplacedFile {
 public:
  ReplacedFile(const std::string& seen_as, const std::string& text)
      : file_(::memfd_create("replaced", MFD_CLOEXEC)) {
    EXPECT_TRUE(file_.get() >= 0 && ::write(file_.get(), text.data(), text.size()) ==
                                        static_cast<ssize_t>(text.size()));
    std::filesystem::create_symlink(fmt::format("/proc/self/fd/{}", file_.get()), seen_as);
  }

 private:
  const FileDescriptor file_;
};

TEST_F(KubeletPolicyTest, FileReplacedBehindItsMountIsReported) {
  const ReplacedFile file(dir_ / "cpu_manager_state", R"({"policyName":"none"})");
  Write("memory_manager_state", R"({"policyName":"None"})");
  KubeletWatch watch(dir_.path(), [](const std::string&) { return true; });
  EXPECT_EQ(watch.Look(), KubeletWatch::News::kOutdated);
  Write("cpu_manager_state", R"({"policyName":"none"})");
  EXPECT_EQ(watch.Look(), KubeletWatch::News::kNone);
}

TEST_F(KubeletPolicyTest, FilesThatAPinningKubeletReplacesAreReportedRarely) {
  const ReplacedFile file(dir_ / "cpu_manager_state", R"({"policyName":"static"})");
  KubeletWatch watch(dir_.path(), [](const std::string&) { return true; });
  int told = 0;
  int looks = 0;
  while (told == 0 && looks < 1000) {
    ++looks;
    told += watch.Look() == KubeletWatch::News::kOutdated ? 1 : 0;
  }
  EXPECT_THAT(looks, AllOf(Gt(10), Lt(1000)));
}

}  // namespace
}  // namespace qrm::manager::kubelet_policy_test
