#include "manager/pods/ended_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager {
namespace {

using std::chrono::milliseconds;
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
  /// Lets the delay of all that has stopped pass.
  void Pass() {
    io_.restart();
    io_.run();
    test::Settle(state_);
  }

  boost::asio::io_context io_;
  EndedPods ended_{{io_, live_, [this] { events_.RemoveEnded(); }}, milliseconds(1)};
};

TEST_F(EndedPodsTest, PodThatEndedIsFreedAlthoughItsSandboxIsKept) {
  ended_.OnStopped("uid-job", "sandbox-job");
  Pass();
  EXPECT_FALSE(Known("job"));
  EXPECT_THAT(plugins_.calls(), testing::Contains("remove cpu uid-job"));
  events_.OnPodRemoved(Pod("job"));  // days later
}

TEST_F(EndedPodsTest, PodWhoseSandboxRunsIsKeptBetweenItsContainers) {  // a crash loop
  Pass();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, PodWhoseSandboxIsReplacedIsKeptUntilTheNextOneStops) {
  ended_.OnStopped("uid-job", "sandbox-job");
  events_.OnPodStarted(Pod("job", "sandbox-new"));
  Pass();
  EXPECT_TRUE(Known("job"));
  ended_.OnStopped("uid-job", "sandbox-new");
  Pass();
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, PodThatStillHasAContainerIsKept) {
  ASSERT_TRUE(Create(Pod("job"), Container("job", "id2")).ok());
  ended_.OnStopped("uid-job", "sandbox-job");
  Pass();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, SandboxThatStoppedUnheardIsFoundByTwoLists) {
  ended_.OnListed({});
  Pass();
  EXPECT_TRUE(Known("job")) << "it may be newer than the list";
  ended_.OnListed({});
  Pass();
  EXPECT_FALSE(Known("job"));
}

TEST_F(EndedPodsTest, SandboxThatIsListedAsReadyIsKept) {
  ended_.OnListed({});
  ended_.OnListed({Pod("job")});
  ended_.OnListed({});
  Pass();
  EXPECT_TRUE(Known("job"));
}

TEST_F(EndedPodsTest, NothingIsFreedAfterItStopped) {
  ended_.OnStopped("uid-job", "sandbox-job");
  ended_.Stop();
  Pass();
  EXPECT_TRUE(Known("job"));
}

}  // namespace
}  // namespace qrm::manager
