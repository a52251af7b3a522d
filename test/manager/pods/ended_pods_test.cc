#include "manager/pods/ended_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager::ended_pods_test {
namespace {

using test::Container;
using test::Pod;

// A node with a finished job: its container has ended, and its sandbox stops.
class EndedPodsTest : public test::PodEventsFixture {
 protected:
  void SetUp() override {
    events_.OnPodStarted(Pod("job"));
    ASSERT_TRUE(Create(Pod("job"), Container("job", "id1")).ok());
    events_.OnContainerStopped(Pod("job"), Container("job", "id1"));
  }
};

TEST_F(EndedPodsTest, PodThatEndedIsFreedAlthoughItsSandboxIsKept) {
  ended_.OnStopped("uid-job", "sandbox-job");
  RunTimers();
  EXPECT_FALSE(Known("job"));
  EXPECT_THAT(plugins_.calls(), testing::Contains("remove cpu uid-job"));
  events_.OnPodRemoved(Pod("job"));  // days later
}

TEST_F(EndedPodsTest, PodWhoseSandboxRunsIsKeptBetweenItsContainers) {  // a crash loop
  RunTimers();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, PodWhoseSandboxIsReplacedIsKeptUntilTheNextOneStops) {
  ended_.OnStopped("uid-job", "sandbox-job");
  events_.OnPodStarted(Pod("job", "sandbox-new"));
  RunTimers();
  EXPECT_TRUE(Known("job"));
  ended_.OnStopped("uid-job", "sandbox-new");
  RunTimers();
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, PodThatStillHasAContainerIsKept) {
  ASSERT_TRUE(Create(Pod("job"), Container("job", "id2")).ok());
  ended_.OnStopped("uid-job", "sandbox-job");
  RunTimers();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, PodWhoseContainerOutlivesItsSandboxIsFreedLater) {
  ASSERT_TRUE(Create(Pod("job"), Container("job", "id2")).ok());
  ended_.OnStopped("uid-job", "sandbox-job");
  io_.run_for(std::chrono::milliseconds(10));
  events_.OnContainerStopped(Pod("job"), Container("job", "id2"));
  RunTimers();
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, SandboxThatIsListedAsStoppedHasStopped) {
  RuntimePod stopped = Pod("job");
  stopped.ready = false;
  ended_.OnListed({stopped});
  RunTimers();
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, SandboxThatIsListedAsReadyAgainHasNotStopped) {
  RuntimePod stopped = Pod("job");
  stopped.ready = false;
  ended_.OnListed({stopped});
  ended_.OnListed({Pod("job")});
  RunTimers();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, SandboxThatWasRemovedUnheardIsFoundByTwoLists) {
  EXPECT_FALSE(ended_.FindRemoved({}));
  RunTimers();
  EXPECT_TRUE(Known("job")) << "it may be newer than the list";
  EXPECT_TRUE(ended_.FindRemoved({}));
  RunTimers();
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, SandboxThatIsListedBetweenTwoListsIsThere) {
  EXPECT_FALSE(ended_.FindRemoved({}));
  EXPECT_TRUE(ended_.FindRemoved({Pod("job")}));
  EXPECT_FALSE(ended_.FindRemoved({}));
  RunTimers();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, PodThatDoesNotComeBackIsFreedAsSoonAsItHasEnded) {
  ended_.ReleaseEnded("uid-job");
  test::Settle(state_);
  EXPECT_TRUE(Known("job")) << "its sandbox runs";
  ended_.OnStopped("uid-job", "sandbox-job");
  test::Settle(state_);
  EXPECT_FALSE(Known("job")) << "without a timer";
}

TEST_F(EndedPodsTest, PodIsFreedWhenAnotherOfItsNameStarts) {
  ended_.OnStopped("uid-job", "sandbox-job");
  RuntimePod next = Pod("next");
  next.name = "job";
  events_.OnPodStarted(next);
  test::Settle(state_);
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, PodOfAnotherNamespaceFreesNoOneOfItsName) {
  ended_.OnStopped("uid-job", "sandbox-job");
  RuntimePod next = Pod("next");
  next.name = "job";
  next.pod_namespace = "other";
  events_.OnPodStarted(next);
  test::Settle(state_);
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, NothingIsFreedAfterItStopped) {
  ended_.OnStopped("uid-job", "sandbox-job");
  ended_.Stop();
  RunTimers();
  EXPECT_TRUE(Known("job"));
}

}  // namespace
}  // namespace qrm::manager::ended_pods_test
