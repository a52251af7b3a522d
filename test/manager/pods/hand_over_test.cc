#include "manager/pods/hand_over.h"

#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/cpuset_dir.h"
#include "test/support/is_ok.h"
#include "test/support/sample_node.h"

namespace qrm::manager::hand_over_test {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

const ContainerKey kOwner{"uid-web", "main"};

// A node with CPUs 0-7, where container main of pod web has exclusive CPUs; others run below a
// directory that represents cgroups.
class HandOverTest : public testing::Test {
 protected:
  /// `cpus` are the CPUs that it took.
  void Run(const std::string& pod, const std::string& cpus, const AllocationByResource& has = {}) {
    cgroups_.Make(pod, cpus);
    live_.AddPod("uid-" + pod, "sandbox-" + pod);
    live_.Add({"uid-" + pod, "main"},
              {.id = pod, .pod_id = "sandbox-" + pod, .started = true, .cgroups_path = pod});
    if (!has.empty()) {
      Change change;
      change.put_containers.push_back(
          {test::SamplePod(pod),
           "main",
           {.allocations = has, .applied = {{std::string(kCpusetCpus), cpus}}, .applied_to = pod}});
      state_ = state_.With(std::move(change));
    }
  }
  void RunOwner(const std::string& cpus) { Run("web", cpus, {{"cpu", test::OwnCpus(cpus)}}); }
  void RunShared(const std::string& pod, const std::string& cpus) {
    Run(pod, cpus, {{"cpu", test::SharedCpus(cpus, 1)}});
  }
  std::string CpusOf(const std::string& pod) const { return cgroups_.CpusOf(pod); }
  NodeCpusets Node() { return {state_, live_, machine_, read_, updates_}; }
  Status MakeRoom() { return MakeRoomFor(kOwner, Node()); }

  test::CpusetDir cgroups_;
  const Machine machine_ = test::SampleMachine();
  NodeState state_;
  LiveContainers live_;
  UpdatesUnderWay updates_;
  int reads_ = 0;
  const CpusetSource read_ = cgroups_.Source(&reads_);
};

TEST_F(HandOverTest, OthersLeaveTheCpusThatTheContainerOwns) {
  RunOwner("2-3");
  RunShared("shared", "0-7");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("shared"), "0-1,4-7");
  EXPECT_EQ(CpusOf("web"), "2-3");
}

TEST_F(HandOverTest, MarksContainersThatLeave) {
  RunOwner("2-3");
  RunShared("shared", "0-7");
  RunShared("far", "4-7");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_THAT(live_.DeferredKeys(), ElementsAre(ContainerKey{"uid-shared", "main"}));
}

TEST_F(HandOverTest, AContainerThatHasNotStartedYetLeavesTheCpus) {
  RunOwner("2-3");
  RunShared("made", "0-7");
  live_.Add({"uid-made", "main"}, {.id = "made", .pod_id = "sandbox-made", .cgroups_path = "made"});
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("made"), "0-1,4-7");
}

TEST_F(HandOverTest, ContainersOnOtherCpusAreNotChanged) {
  RunOwner("2-3");
  RunShared("far", "2-7");
  cgroups_.Make("far", "4-7\n");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("far"), "4-7\n");
}

TEST_F(HandOverTest, NoCgroupIsReadOfContainersThatAreOnOtherCpusByTheirRecords) {
  RunOwner("2-3");
  RunShared("far", "4-7");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(reads_, 0);
}

TEST_F(HandOverTest, AContainerThatTheRuntimeHasNotMovedYetLeavesTheCpus) {
  RunOwner("2-3");
  RunShared("moves", "2-7");
  Change change;
  change.put_containers.push_back({test::SamplePod("moves"),
                                   "main",
                                   {.allocations = {{"cpu", test::SharedCpus("4-7", 1)}},
                                    .applied = {{std::string(kCpusetCpus), "2-7"}},
                                    .applied_to = "moves"}});
  state_ = state_.With(std::move(change));
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("moves"), "4-7");
}

// By its record it is on other CPUs, since the owner came while the runtime was writing.
TEST_F(HandOverTest, AContainerWithAPendingUpdateLeavesTheCpusOnceItIsWritten) {
  RunOwner("2-3");
  RunShared("grows", "4-7");
  updates_.Note({"uid-grows", "main"}, CpuSet::Range(2, 7));
  std::promise<void> waits;
  const CpusetSource read = [&](const std::string& path) {
    if (reads_ == 2) {
      waits.set_value();
    }
    return read_(path);
  };
  auto room = std::async(std::launch::async, [&] {
    return MakeRoomFor(kOwner, {state_, live_, machine_, read, updates_});
  });
  waits.get_future().wait();
  cgroups_.Make("grows", "2-7");  // the runtime's write
  ASSERT_TRUE(IsOk(room.get()));
  EXPECT_EQ(CpusOf("grows"), "4-7");
  EXPECT_THAT(live_.DeferredKeys(), ElementsAre(ContainerKey{"uid-grows", "main"}));
  EXPECT_TRUE(updates_.With(CpuSet{2}).empty()) << "no container waits for it again";
}

TEST_F(HandOverTest, AnUpdateThatIsNotWrittenDelaysNoContainerForLong) {
  RunOwner("2-3");
  RunShared("fails", "2-7");
  updates_.Note({"uid-fails", "main"}, CpuSet::Range(1, 7));
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("fails"), "4-7") << "it leaves its CPUs";
}

TEST_F(HandOverTest, AnUpdateThatIsNotWrittenHoldsUpOneOwnerOnly) {
  RunOwner("2-3");
  RunShared("fails", "2-7");
  updates_.Note({"uid-fails", "main"}, CpuSet::Range(1, 7));
  ASSERT_TRUE(IsOk(MakeRoom()));
  reads_ = 0;
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_LT(reads_, 10) << "one a millisecond is read while it waits";
}

TEST_F(HandOverTest, UpdatesThatGiveOtherCpusAreNotWaitedFor) {
  RunOwner("2-3");
  RunShared("far", "4-7");
  updates_.Note({"uid-far", "main"}, CpuSet::Range(4, 6));
  updates_.Note(kOwner, CpuSet::Range(2, 3));
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(reads_, 0);
}

TEST_F(HandOverTest, AnOwnerOfTheSameCpusInTurnKeepsThem) {
  RunOwner("2-3");
  Run("init", "2-3", {{"cpu", test::OwnCpus("2-3")}});
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("init"), "2-3");
}

TEST_F(HandOverTest, AContainerBesideOwnersOfTheSameCpusInTurnLeavesThem) {
  RunOwner("2-3");
  Run("init", "2-3", {{"cpu", test::OwnCpus("2-3")}});
  RunShared("shared", "2-7");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("shared"), "4-7");
}

TEST_F(HandOverTest, OthersLeaveWhatAnOwnerHasNotTakenYet) {
  Run("web", "0-1", {{"cpu", test::OwnCpus("2-3")}});
  RunShared("shared", "2-7");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("shared"), "4-7");
}

TEST_F(HandOverTest, AnOwnerOfOtherCpusLeavesItsFormerCpus) {
  RunOwner("2-3");
  Run("other", "2-5", {{"cpu", test::OwnCpus("4-5")}});
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("other"), "4-5");
}

TEST_F(HandOverTest, AContainerWithNoCpuLeftGoesToCpusThatAreNotExclusive) {
  RunOwner("2-3");
  Run("other", "0-1", {{"cpu", test::OwnCpus("0-1")}});
  RunShared("displaced", "3");
  ASSERT_TRUE(IsOk(MakeRoom()));
  EXPECT_EQ(CpusOf("displaced"), "4-7");
}

TEST_F(HandOverTest, AContainerWithoutOtherCpusIsNamed) {
  RunOwner("0-7");
  RunShared("stuck", "3");
  EXPECT_THAT(
      MessageOf(MakeRoom()),
      HasSubstr("container main of pod uid-stuck runs on CPUs 3, but all CPUs are exclusive"));
}

TEST_F(HandOverTest, AContainerThatTheKernelDoesNotMoveIsNamed) {
  RunOwner("2-3");
  RunShared("stuck", "2-4");
  cgroups_.Break("stuck");
  const Status room = MakeRoom();
  EXPECT_EQ(room.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(room),
              HasSubstr("container main of pod uid-stuck does not leave CPUs 2-3"));
}

TEST_F(HandOverTest, CgroupsThatMayNotBeWrittenAreDistinguished) {
  RunOwner("2-3");
  RunShared("other", "2-4");
  cgroups_.MakeReadOnly("other");
  EXPECT_EQ(MakeRoom().code(), StatusCode::kPermissionDenied);
}

TEST_F(HandOverTest, AStartingContainerLeavesExclusiveCpusOfOthers) {
  RunOwner("2-3");
  RunShared("late", "0-7");
  const ContainerKey late{"uid-late", "main"};
  EXPECT_TRUE(MayRunOnOwned(late, Node()));
  ASSERT_TRUE(IsOk(LeaveOwned(late, Node())));
  EXPECT_EQ(CpusOf("late"), "0-1,4-7");
}

TEST_F(HandOverTest, AContainerThatIsNotOnRecordLeavesExclusiveCpusOfOthers) {
  RunOwner("2-3");
  Run("unknown", "0-7");
  EXPECT_TRUE(MayRunOnOwned({"uid-unknown", "main"}, Node()));
  ASSERT_TRUE(IsOk(LeaveOwned({"uid-unknown", "main"}, Node())));
  EXPECT_EQ(CpusOf("unknown"), "0-1,4-7");
}

TEST_F(HandOverTest, AContainerThatStartsOnOtherCpusOrItsExclusiveCpusNeedsNothing) {
  RunOwner("2-3");
  RunShared("far", "4-7");
  EXPECT_FALSE(MayRunOnOwned({"uid-far", "main"}, Node()));
  EXPECT_FALSE(MayRunOnOwned(kOwner, Node()));
  ASSERT_TRUE(IsOk(LeaveOwned(kOwner, Node())));
  EXPECT_EQ(CpusOf("web"), "2-3");
}

}  // namespace
}  // namespace qrm::manager::hand_over_test
