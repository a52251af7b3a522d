#include "manager/pods/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager::inventory_test {
namespace {

using test::Container;
using test::Key;
using test::Pod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RuntimePod Stopped(const std::string& name) {
  RuntimePod pod = Pod(name);
  pod.ready = false;
  return pod;
}

// A node with a pod whose container was created but may not have started.
class InventoryTest : public test::PodEventsFixture {
 protected:
  void SetUp() override {
    events_.OnPodStarted(Pod("web"));
    ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
    Reconciles();
  }
  bool IsLive() const { return live_.Find(Key("web")).has_value(); }
  bool HasStarted() const { return live_.Find(Key("web")).value_or(LiveContainer()).started; }
};

TEST_F(InventoryTest, FindsAContainerThatStartedUnheard) {
  const RuntimeList created{{Pod("web")},
                            {Container("web", "id1", RuntimeContainerState::kCreated)}};
  EXPECT_EQ(inventory_.OnListed(created), ListVerdict::kCertain);
  EXPECT_FALSE(HasStarted());
  const std::size_t before = Reconciles();
  const RuntimeList runs{{Pod("web")}, {Container("web", "id1")}};
  EXPECT_EQ(inventory_.OnListed(runs), ListVerdict::kCertain);
  EXPECT_TRUE(HasStarted());
  EXPECT_EQ(Reconciles(), before + 1) << "decisions since its creation can be applied";
  EXPECT_EQ(inventory_.OnListed(runs), ListVerdict::kCertain);
  EXPECT_EQ(Reconciles(), before + 1) << "no news";
}

TEST_F(InventoryTest, FindsAContainerThatEndedUnheard) {
  EXPECT_EQ(inventory_.OnListed(
                {{Pod("web")}, {Container("web", "id1", RuntimeContainerState::kStopped)}}),
            ListVerdict::kCertain);
  EXPECT_FALSE(IsLive());
  EXPECT_TRUE(Known("web")) << "it may be started again";
}

TEST_F(InventoryTest, KnowsWhatEndedBeforeASynchronization) {
  RuntimeContainer again = Container("again", "id3", RuntimeContainerState::kStopped);
  again.attempt = 1;
  Synchronize({Pod("job"), Pod("again")},
              {Container("job", "id2", RuntimeContainerState::kStopped), again});
  EXPECT_THAT(live_.EndedOnce("uid-job"), ElementsAre("main"));
  EXPECT_THAT(live_.EndedOnce("uid-again"), IsEmpty());
}

TEST_F(InventoryTest, KeepsAContainerWhosePredecessorHasEnded) {
  EXPECT_EQ(inventory_.OnListed({{Pod("web")},
                                 {Container("web", "id0", RuntimeContainerState::kStopped),
                                  Container("web", "id1")}}),
            ListVerdict::kCertain);
  EXPECT_TRUE(IsLive());
}

TEST_F(InventoryTest, FindsAContainerThatWasRemovedUnheardByTwoLists) {
  events_.OnContainerStarted(Pod("web"), Container("web", "id1"));
  EXPECT_EQ(inventory_.OnListed({{Pod("web")}, {}}), ListVerdict::kUnconfirmed);
  EXPECT_TRUE(IsLive()) << "it may be newer than the list";
  EXPECT_EQ(inventory_.OnListed({{Pod("web")}, {}}), ListVerdict::kCertain);
  EXPECT_FALSE(IsLive());
}

TEST_F(InventoryTest, KeepsAContainerThatTheRuntimeTakesLongToMake) {
  EXPECT_EQ(inventory_.OnListed({{Pod("web")}, {}}), ListVerdict::kCertain);
  EXPECT_EQ(inventory_.OnListed({{Pod("web")}, {}}), ListVerdict::kCertain);
  EXPECT_TRUE(IsLive());
}

TEST_F(InventoryTest, FindsAPodThatEndedUnheard) {
  inventory_.OnListed(
      {{Stopped("web")}, {Container("web", "id1", RuntimeContainerState::kStopped)}});
  RunTimers();
  EXPECT_FALSE(Known("web"));
}

TEST_F(InventoryTest, FindsAPodThatEndedWhileNriIsNotRunning) {
  inventory_.OnObserved({.pods = {Stopped("web")}, .containers = {}, .doubtful = {}});
  RunTimers();
  EXPECT_FALSE(Known("web"));
  inventory_.OnObserved({.pods = {Stopped("web")}, .containers = {}, .doubtful = {}});
  EXPECT_FALSE(live_.HasPod("uid-web")) << "it is not forgotten once more";
}

TEST_F(InventoryTest, PlacesAContainerThatNriLeavesOutAgainAndSeesItsEnd) {
  Serve(true, true);
  RuntimeContainer untold = Container("late", "id2");
  inventory_.OnLeftOutAgain(Pod("late"), untold);
  test::Settle(state_);
  EXPECT_TRUE(Known("late"));
  EXPECT_EQ(Live("late").shown.cpu_shares, 2048U) << "it may have been resized";
  Synchronize({Pod("web")}, {Container("web", "id1")});
  EXPECT_TRUE(Known("late")) << "a third synchronization leaves it out, too";
  untold.state = RuntimeContainerState::kStopped;
  inventory_.OnListed({{Pod("web"), Stopped("late")}, {Container("web", "id1"), untold}});
  RunTimers();
  EXPECT_FALSE(Known("late"));
}

// As with a cri-socket of another runtime.
TEST_F(InventoryTest, AListOfAnotherRuntimeEndsNothingThatNriReported) {
  events_.OnContainerStarted(Pod("web"), Container("web", "id1"));
  const RuntimeList others{{Pod("other")}, {Container("other", "id9")}};
  EXPECT_EQ(inventory_.OnListed(others), ListVerdict::kUnconfirmed);
  EXPECT_THAT(inventory_.contradiction(), IsEmpty()) << "the pod may be newer than the list";
  EXPECT_EQ(inventory_.OnListed(others), ListVerdict::kContradicted);
  EXPECT_EQ(inventory_.OnListed(others), ListVerdict::kContradicted);
  RunTimers();
  EXPECT_TRUE(Known("web"));
  EXPECT_TRUE(IsLive());
  EXPECT_THAT(inventory_.contradiction(), HasSubstr("(1, such as default/web)"));

  const RuntimeList ours{{Pod("web")}, {Container("web", "id1")}};
  EXPECT_EQ(inventory_.OnListed(ours), ListVerdict::kCertain);
  EXPECT_THAT(inventory_.contradiction(), IsEmpty());
}

TEST_F(InventoryTest, AListOfAnotherRuntimeEndsNothingWhileNriIsNotRunningEither) {
  const Observation others{.pods = {Pod("other")},
                           .containers = {},
                           .doubtful = {"uid-web"},
                           .unknown_to_cri = live_.UnknownToCri({"sandbox-other"})};
  inventory_.OnObserved(others);
  inventory_.OnObserved(others);
  EXPECT_THAT(live_.UnknownToCri({"sandbox-other"}), ElementsAre("uid-web"))
      << "what only CRI has listed proves nothing of CRI";
  EXPECT_THAT(inventory_.contradiction(), HasSubstr("default/web"));
}

}  // namespace
}  // namespace qrm::manager::inventory_test
