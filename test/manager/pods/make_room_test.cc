#include "manager/pods/make_room.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using test::IsOk;
using testing::HasSubstr;

const ContainerKey kOwner{"uid-web", "main"};

// Container main of pod web owns CPUs 2-3; others run below a directory that stands for cgroups.
class MakeRoomTest : public testing::Test {
 protected:
  void Run(const std::string& pod, const std::string& cpus, const std::string& owns = "") {
    std::filesystem::create_directory(dir_ / pod);
    std::ofstream(dir_ / pod + "/cpuset.cpus") << cpus;
    live_.AddPod("uid-" + pod, "sandbox-" + pod);
    live_.Add({"uid-" + pod, "main"},
              {.id = pod, .pod_id = "sandbox-" + pod, .started = true, .cgroups_path = pod});
    if (!owns.empty()) {
      Change change;
      change.put_containers.push_back(
          {test::SamplePod(pod), "main", {.allocations = {{"cpu", test::OwnCpus(owns)}}}});
      state_ = state_.With(std::move(change));
    }
  }
  std::string CpusOf(const std::string& pod) const {
    std::ifstream file(dir_ / pod + "/cpuset.cpus");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Status MakeRoom() const {
    return MakeRoomFor(kOwner, state_, live_,
                       [this](const std::string& path) -> StatusOr<CgroupCpuset> {
                         QRM_ASSIGN_OR_RETURN(CpuSet cpus, CpuSet::Parse(CpusOf(path)));
                         return CgroupCpuset{.cpus = std::move(cpus), .path = dir_ / path};
                       });
  }

  const test::TempDir dir_;
  NodeState state_;
  LiveContainers live_;
};

TEST_F(MakeRoomTest, OthersLeaveTheCpusThatTheContainerOwns) {
  Run("web", "2-3", "2-3");
  Run("shared", "0-7");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("shared"), "0-1,4-7");
  EXPECT_EQ(CpusOf("web"), "2-3");
}

TEST_F(MakeRoomTest, ThoseThatRunElsewhereAreLeftAlone) {
  Run("web", "2-3", "2-3");
  Run("far", "4-7\n");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("far"), "4-7\n");
}

TEST_F(MakeRoomTest, OneThatOwnsTheSameCpusInTurnKeepsThem) {
  Run("web", "2-3", "2-3");
  Run("init", "2-3", "2-3");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("init"), "2-3");
}

TEST_F(MakeRoomTest, OneThatWouldHaveNoCpuLeftIsNamed) {
  Run("web", "2-3", "2-3");
  Run("stuck", "3");
  EXPECT_THAT(MessageOf(MakeRoom()),
              HasSubstr("container main of pod uid-stuck has no other CPUs than 3"));
}

}  // namespace
}  // namespace qrm::manager
