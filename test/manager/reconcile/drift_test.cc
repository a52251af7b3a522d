#include "manager/reconcile/drift.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/support/sample_node.h"

namespace qrm::manager::drift_test {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

ContainerKey Key(int number) {
  return {"uid-" + std::to_string(number), "main"};
}

TEST(DriftOfTest, NamesTheKernelsValueInsteadOfOurs) {
  const CgroupCpuset kernel{.cpus = {0, 1}, .mems = {0}};
  EXPECT_THAT(DriftOf({{"CpusetCpus", "0-3"}, {"CpusetMems", "0"}}, kernel),
              ElementsAre(Pair("CpusetCpus", "0-1")));
  EXPECT_THAT(DriftOf({{"CpusetCpus", "1,0"}, {"CpuQuota", "5"}}, kernel), IsEmpty())
      << "the same CPUs, written otherwise";
  EXPECT_THAT(DriftOf({{"CpusetMems", "1"}}, kernel), ElementsAre(Pair("CpusetMems", "0")));
  EXPECT_THAT(DriftOf({{"CpusetCpus", "x"}}, kernel), IsEmpty());
}

TEST(DriftOfTest, ReportsNoDriftForOfflineCpus) {
  EXPECT_THAT(DriftOf({{"CpusetCpus", "0-3"}}, {.cpus = {0, 1}}, {2, 3}), IsEmpty());
  EXPECT_THAT(DriftOf({{"CpusetCpus", "0-3"}}, {.cpus = {0}}, {2, 3}),
              ElementsAre(Pair("CpusetCpus", "0")));
}

TEST(HasItsCpusTest, SharedContainersMayLackCpusAndHaveNoOthers) {
  const checkpoint::ContainerRecord shared{.allocations = {{"cpu", test::SharedCpus("0-3", 4)}}};
  EXPECT_TRUE(HasItsCpus(shared, {0, 1, 2, 3}));
  EXPECT_TRUE(HasItsCpus(shared, {2, 3}));
  EXPECT_FALSE(HasItsCpus(shared, {3, 4}));
  EXPECT_TRUE(HasItsCpus({}, {3, 4})) << "it is not pinned";
}

TEST(HasItsCpusTest, OwnersHaveAllOfTheirsThatAreOnline) {
  const checkpoint::ContainerRecord owner{.allocations = {{"cpu", test::OwnCpus("0-1")}}};
  EXPECT_TRUE(HasItsCpus(owner, {0, 1}));
  EXPECT_FALSE(HasItsCpus(owner, {0}));
  EXPECT_TRUE(HasItsCpus(owner, {0}, {1}));
}

// Containers 0 to 9 of ten pods, each pinned to CPUs 0-3, and a kernel that a test changes.
class DriftCheckTest : public testing::Test {
 protected:
  DriftCheckTest() {
    Change change;
    std::map<SharedText, std::set<SharedText>> pods;
    std::map<ContainerKey, LiveContainer> containers;
    for (int i = 0; i < 10; ++i) {
      const std::string pod = std::to_string(i);
      change.put_containers.push_back({test::SamplePod(pod),
                                       "main",
                                       {.allocations = {{"cpu", test::SharedCpus("0-3", 4)}},
                                        .applied = {{"CpusetCpus", "0-3"}},
                                        .applied_to = "id-" + pod}});
      pods["uid-" + pod] = {"sandbox-" + pod};
      containers[Key(i)] = {"id-" + pod, "sandbox-" + pod, true, "/kubepods/" + pod};
    }
    live_.Reset(pods, containers);
    state_ = state_.With(change);
  }

  StatusOr<CgroupCpuset> Read(const std::string& path) {
    reads_.push_back(path);
    const auto found = kernel_.find(path);
    return found == kernel_.end() ? CgroupCpuset{.cpus = {0, 1, 2, 3}, .mems = {0}} : found->second;
  }
  DriftCheck::Parts Parts() {
    return {.read = [this](const std::string& path) { return Read(path); },
            .live = live_,
            .writes = writes_};
  }

  NodeState state_;
  LiveContainers live_;
  std::vector<std::string> news_;
  ForeignWrites writes_{[this](const ForeignWrite& write) { news_.push_back(write.theirs); }};
  std::vector<std::string> reads_;
  std::map<std::string, StatusOr<CgroupCpuset>> kernel_;
};

TEST_F(DriftCheckTest, LooksAtAFewInEachRunAndAtAllInTurn) {
  DriftCheck check(Parts(), 4);
  EXPECT_TRUE(check.Find(state_).Empty());
  EXPECT_THAT(reads_, ElementsAre("/kubepods/0", "/kubepods/1", "/kubepods/2", "/kubepods/3"));
  check.Find(state_);
  check.Find(state_);
  EXPECT_THAT(reads_, SizeIs(12));
  EXPECT_EQ(reads_[11], "/kubepods/1") << "after the last the first ones follow";
}

TEST_F(DriftCheckTest, LooksAtEachOnceWhenThereAreFew) {
  DriftCheck check(Parts(), 64);
  check.Find(state_);
  EXPECT_THAT(reads_, SizeIs(10));
}

TEST_F(DriftCheckTest, ForgetsWhatDriftedSoThatItIsAppliedAgain) {
  kernel_["/kubepods/3"] = CgroupCpuset{.cpus = {0, 7}, .mems = {0}};
  DriftCheck check(Parts());
  const Change change = check.Find(state_);
  ASSERT_THAT(change.put_containers, SizeIs(1));
  EXPECT_EQ(change.put_containers[0].pod.uid, "uid-3");
  EXPECT_THAT(change.put_containers[0].record.applied, IsEmpty());
  EXPECT_THAT(change.put_containers[0].record.allocations, SizeIs(1));
  EXPECT_EQ(writes_.repairs(), 1u);
  EXPECT_THAT(news_, ElementsAre("0,7"));
}

TEST_F(DriftCheckTest, ReportsNoDriftForCpusThatAContainerLeftToAnOwner) {
  kernel_["/kubepods/3"] = CgroupCpuset{.cpus = {0, 1, 2}, .mems = {0}};
  live_.Defer(Key(3), "id-3", {});
  EXPECT_TRUE(DriftCheck(Parts()).Find(state_).Empty());
  live_.ClearDeferred(Key(3), "id-3");
  EXPECT_THAT(DriftCheck(Parts()).Find(state_).put_containers, SizeIs(1));
}

TEST_F(DriftCheckTest, ReportsNoDriftForCpusThatTheRuntimeDoesNotKnowYet) {
  Change change;
  change.put_containers.push_back({test::SamplePod("3"),
                                   "main",
                                   {.allocations = {{"cpu", test::SharedCpus("2-3", 1)}},
                                    .applied = {{"CpusetCpus", "0-3"}},
                                    .applied_to = "id-3"}});
  state_ = state_.With(change);
  kernel_["/kubepods/3"] = CgroupCpuset{.cpus = {2, 3}, .mems = {0}};
  EXPECT_TRUE(DriftCheck(Parts()).Find(state_).Empty());
}

TEST_F(DriftCheckTest, ReportsNoDriftInItsFirstRoundForMissingCpus) {
  kernel_["/kubepods/3"] = CgroupCpuset{.cpus = {0, 1}, .mems = {0}};
  DriftCheck check(Parts());
  EXPECT_THAT(check.Find(state_).put_containers, SizeIs(1));
  EXPECT_EQ(writes_.repairs(), 0u) << "an earlier qrmd may have taken them for an owner";
  EXPECT_THAT(check.Find(state_).put_containers, SizeIs(1));
  EXPECT_EQ(writes_.repairs(), 1u);
}

TEST_F(DriftCheckTest, PassesOverWhatCannotBeReadAndWhatIsNotOurs) {
  kernel_.emplace("/kubepods/1", Errorf(StatusCode::kNotFound, "gone"));
  live_.Add({"uid-foreign", "main"}, {"id", "sandbox", true, "/kubepods/foreign"});
  live_.Add(Key(2), {"id-2", "sandbox-2", false, "/kubepods/2"});  // not started yet
  kernel_["/kubepods/2"] = CgroupCpuset{};
  DriftCheck check(Parts());
  EXPECT_TRUE(check.Find(state_).Empty());
}

TEST_F(DriftCheckTest, SaysWhatAnUpdateDidNotChange) {
  kernel_["/kubepods/3"] = CgroupCpuset{.cpus = {7}, .mems = {0}};
  const DriftCheck check(Parts());
  EXPECT_THAT(check.ReadBack(Key(3), {{"CpusetCpus", "0-1"}}), HasSubstr("the kernel has"));
  EXPECT_EQ(check.ReadBack(Key(3), {{"CpusetCpus", "7"}}), "");
  EXPECT_EQ(check.ReadBack({"uid-gone", "main"}, {{"CpusetCpus", "7"}}), "");
}

TEST_F(DriftCheckTest, ReadsNothingWithoutASource) {
  DriftCheck check({.read = {}, .live = live_, .writes = writes_});
  EXPECT_TRUE(check.Find(state_).Empty());
  EXPECT_EQ(check.ReadBack(Key(3), {{"CpusetCpus", "0-1"}}), "");
}

}  // namespace
}  // namespace qrm::manager::drift_test
