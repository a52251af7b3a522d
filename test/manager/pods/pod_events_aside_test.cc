// Pod events while NRI is not available, and while another process pins the containers.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/await.h"

namespace qrm::test::pod_events_aside_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class PodEventsAsideTest : public PodEventsFixture {
 protected:
  void Observe(manager::Observation seen) {
    inventory_.OnObserved(std::move(seen));
    Settle(state_);
    Settle(state_);
  }
};

TEST_F(PodEventsAsideTest, ObservedContainersAreAdmittedOnceAndPinned) {
  Observe({{Pod("web")}, {Container("web", "id1")}, {}});
  ASSERT_TRUE(Known("web"));
  EXPECT_THAT(state_.Load()->Find(Key("web"))->applied, IsEmpty());
  EXPECT_EQ(Reconciles(), 1U);
  plugins_.ForgetCalls();
  Observe({{Pod("web")}, {Container("web", "id1")}, {}});
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  EXPECT_EQ(Reconciles(), 1U) << "nothing is new";
}

// containerd accepts an update of a container that it is just starting, and applies nothing.
TEST_F(PodEventsAsideTest, ObservedContainerIsPlacedAtItsCreationAndPinnedAtItsStart) {
  Observe({{Pod("web")}, {Container("web", "id1", RuntimeContainerState::kCreated)}, {}});
  EXPECT_TRUE(Known("web"));
  EXPECT_FALSE(Live("web").started) << "it gets no update yet";
  const std::size_t before = Reconciles();
  Observe({{Pod("web")}, {Container("web", "id1")}, {}});
  EXPECT_TRUE(Live("web").started);
  EXPECT_EQ(Reconciles(), before + 1);
}

TEST_F(PodEventsAsideTest, OfTwoObservedContainersWithOneNameTheRunningOneCounts) {
  std::vector<RuntimeContainer> listed = {Container("web", "made", RuntimeContainerState::kCreated),
                                          Container("web", "runs")};
  for (int order = 0; order < 2; ++order) {
    Observe({{Pod("web")}, listed, {}});
    EXPECT_EQ(Live("web").id, "runs");
    std::reverse(listed.begin(), listed.end());
  }
  Observe({{Pod("web")}, {listed[0], listed[0]}, {}});
  EXPECT_EQ(live_.All().size(), 1U) << "an id that is listed twice is one container";
}

TEST_F(PodEventsAsideTest, ObservedPodKeepsItsAllocationsInANewSandbox) {
  Observe({{Pod("web", "sandbox-old"), Pod("web")}, {Container("web", "id1")}, {}});
  Observe({{Pod("web")}, {Container("web", "id1")}, {}});
  EXPECT_TRUE(Known("web"));
  EXPECT_THAT(plugins_.calls(), Not(Contains("remove cpu uid-web")));
}

TEST_F(PodEventsAsideTest, RestartedContainerIsPinnedAgain) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  Observe({{Pod("web")}, {Container("web", "id2")}, {}});
  EXPECT_THAT(state_.Load()->Find(Key("web"))->applied, IsEmpty());
  EXPECT_EQ(Live("web").id, "id2");
  EXPECT_EQ(Reconciles(), 1U);
}

TEST_F(PodEventsAsideTest, ContainerThatHasOurCpusInTheKernelIsNotChanged) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  RuntimeContainer pinned = Container("web", "id2");
  pinned.resources.cpuset_cpus = "0-1";
  Observe({{Pod("web")}, {pinned}, {}});
  EXPECT_EQ(Reconciles(), 0U);
}

TEST_F(PodEventsAsideTest, ContainerThatReplacedAnotherHasNoneOfItsOtherValues) {
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record{
        .allocations = {{"quota",
                         ResourceAllocation{.oci_property = "CpuQuota", .value = "50000"}}},
        .applied = {{"CpuQuota", "50000"}},
        .applied_to = "id1"};
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", std::move(record)});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  Observe({{Pod("web")}, {Container("web", "id2")}, {}});
  EXPECT_THAT(state_.Load()->Find(Key("web"))->applied, IsEmpty());
  EXPECT_EQ(Reconciles(), 1U);
}

TEST_F(PodEventsAsideTest, NoDoubtfulPodIsRemoved) {
  ASSERT_TRUE(Create(Pod("gone"), Container("gone", "id1")).ok());
  ASSERT_TRUE(Create(Pod("doubtful"), Container("doubtful", "id2")).ok());
  Observe({{}, {}, {"uid-doubtful"}});
  EXPECT_FALSE(Known("gone"));
  EXPECT_TRUE(Known("doubtful"));
  EXPECT_TRUE(live_.Find(Key("doubtful")).has_value());
}

TEST_F(PodEventsAsideTest, NriThatComesBackAdmitsNothingTwice) {
  Observe({{Pod("web")}, {Container("web", "id1")}, {}});
  plugins_.ForgetCalls();
  RuntimeContainer pinned = Container("web", "id1");
  pinned.resources.cpuset_cpus = "0-1";
  Synchronize({Pod("web")}, {pinned});
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("allocate"))));
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodEventsAsideTest, ContainerThatDidNotFitIsTriedAgainWhenAPodGoes) {
  ASSERT_TRUE(Create(Pod("old"), Container("old", "id1")).ok());
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "cannot place: no CPU is free");
  plugins_.Set("cpu", full);
  Observe({{Pod("old"), Pod("web")}, {Container("old", "id1"), Container("web", "id2")}, {}});
  EXPECT_FALSE(Known("web"));
  Serve(true);
  Observe({{Pod("web")}, {Container("web", "id2")}, {}});
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodEventsAsideTest, FollowsOverCriFromTheEndOfNriToTheNextSynchronization) {
  runtime_.SetContainers({Pod("web")}, {Container("web", "id1")});
  events_.OnDisconnected(Errorf(StatusCode::kUnavailable, "cut off"));
  ASSERT_TRUE(Await([this] {
    io_.restart();
    io_.poll();
    return observer_.GetStatus().working;
  }));
  Settle(state_);
  EXPECT_TRUE(Known("web"));
  Synchronize({Pod("web")}, {Container("web", "id1")});
  EXPECT_FALSE(observer_.GetStatus().active);
}

TEST_F(PodEventsAsideTest, TouchesNothingWhileAnotherProcessPins) {
  aside_ = true;
  const auto adjustment = Create(Pod("web"), Container("web", "id1"));
  ASSERT_TRUE(adjustment.ok());
  EXPECT_EQ(*adjustment, ContainerAdjustment());
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  aside_ = false;
  placer_.RetryUnplaced();
  Settle(state_);
  EXPECT_TRUE(Known("web")) << "placed after the fact";
  aside_ = true;
  EXPECT_THAT(Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-7"}), IsEmpty());
}

}  // namespace
}  // namespace qrm::test::pod_events_aside_test
