// Faults of the node that nothing else reports, on directories as the kernel and kubelet make them.
#include "manager/daemon/node_checks.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/spare_handles.h"
#include "manager/runtime/live_containers.h"
#include "test/support/temp_dir.h"
#include "test/support/used_up_handles.h"

namespace qrm::manager::node_checks_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NodeChecksTest : public testing::Test {
 protected:
  NodeChecksTest() {
    std::filesystem::create_directories(cgroups_ + "/pod1/c1");
    std::filesystem::create_directory(kubelet_);
    std::ofstream(cgroups_ + "/cgroup.controllers") << "cpuset cpu memory\n";
    for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
      std::ofstream(cgroups_ + "/pod1/c1/" + file) << "0\n";
    }
  }
  void Run(const std::string& cgroups_path) {
    live_.AddPod("uid", "sandbox");
    live_.Add({"uid", "main"},
              {.id = "id", .pod_id = "sandbox", .started = true, .cgroups_path = cgroups_path});
  }
  std::vector<std::string> Look() {
    checks_.Look(now_);
    return checks_.problems();
  }

  const test::TempDir dir_;
  const std::string cgroups_ = dir_ / "cgroup";
  const std::string kubelet_ = dir_ / "kubelet";
  LiveContainers live_;
  NodeChecks::Clocks now_ = NodeChecks::Clocks::Now();
  NodeChecks checks_{{cgroups_, kubelet_, /*writes_cpusets=*/true}, live_};
};

TEST_F(NodeChecksTest, FindNothingOnAGoodNode) {
  Run("/pod1/c1");
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(NodeChecksTest, FindThatTheCgroupsAreGone) {
  Run("/pod1/c1");
  std::filesystem::remove_all(cgroups_);
  EXPECT_THAT(Look(), ElementsAre(AllOf(HasSubstr(cgroups_), HasSubstr("set cgroup-root"))));
}

TEST_F(NodeChecksTest, FindOfTheSecondLookOnThatNoCgroupIsOfARunningContainer) {
  Run("/elsewhere/c1");
  EXPECT_THAT(Look(), IsEmpty()) << "the container may just have ended";
  EXPECT_THAT(Look(), ElementsAre(AllOf(HasSubstr("container main of pod uid"),
                                        HasSubstr("set cgroup-root"))));
}

TEST_F(NodeChecksTest, FindThatKubeletsDirectoryIsMissing) {
  std::filesystem::remove(kubelet_);
  EXPECT_THAT(Look(), ElementsAre(AllOf(HasSubstr("kubelet-state-dir " + kubelet_),
                                        HasSubstr("--root-dir"))));
}

TEST_F(NodeChecksTest, FindThatTheClockJumpedSinceTheStartAndForgetItAfterAMinute) {
  now_.wall += hours(1);
  EXPECT_THAT(Look(), ElementsAre(HasSubstr("the clock jumped by +3600 s")));
  now_.wall += seconds(61);
  now_.steady += seconds(61);
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(NodeChecksTest, FindThatFileHandlesAreUsedUp) {
  NodeChecks checks({}, live_);
  {
    auto kept = std::make_unique<SpareHandles>();
    const test::UsedUpHandles used_up;
    kept.reset();  // as a listener does, for the answer that shows it
    checks.Look(now_);
  }
  EXPECT_THAT(checks.problems(), ElementsAre(HasSubstr("raise LimitNOFILE")));
  checks.Look(now_);
  EXPECT_THAT(checks.problems(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::node_checks_test
