#include "manager/admission/releaser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/support/answering_plugins.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"

namespace qrm::manager::releaser_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Two pods with a cpu allocation each.
class ReleaserTest : public testing::Test {
 protected:
  ReleaserTest() {
    plugins_.Set("cpu", {});
    test::RunOn(state_, [this] {
      checkpoint::Change change;
      for (const char* pod : {"a", "b"}) {
        change.put_containers.push_back(
            {test::SamplePod(pod), "main", {.allocations = {{"cpu", test::OwnCpus("0-1")}}}});
      }
      ASSERT_TRUE(state_.Commit(change).ok());
    });
  }
  /// Work that is still posted uses the releaser.
  void TearDown() override { test::Settle(state_); }
  void SetAway() {
    test::PluginScript away;
    away.removes = Errorf(StatusCode::kUnavailable, "the cpu plugin is not running");
    plugins_.Set("cpu", away);
  }
  Status RemovePods(const std::vector<std::string>& uids) {
    return test::RunOn(state_, [&] { return releaser_.RemovePods(uids); });
  }
  void Replay() {
    test::RunOn(state_, [this] { releaser_.Replay("cpu", [this] { ++replayed_; }); });
    test::Settle(state_);
  }

  test::Journal journal_;
  test::AnsweringPlugins plugins_;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  std::vector<checkpoint::NodeEvent> noted_;
  Releaser releaser_{state_, plugins_, {}, [this](const auto& event) { noted_.push_back(event); }};
  int replayed_ = 0;
};

TEST_F(ReleaserTest, NotifiesThePluginsAndForgetsThePod) {
  ASSERT_TRUE(RemovePods({"uid-a"}).ok());
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a"));
  EXPECT_EQ(state_.Load()->FindPod("uid-a"), nullptr);
  EXPECT_THAT(state_.Load()->pending_removals(), IsEmpty());
  ASSERT_EQ(noted_.size(), 1U);
  EXPECT_EQ(noted_[0].type, "removal");
  EXPECT_EQ(noted_[0].pod_name, "a");
}

TEST_F(ReleaserTest, NotifiesAPluginProcessOfOnePodAfterAnotherWithoutWaiting) {
  plugins_.Set("cpu", {.registered_by = RegisteredBy::kWatcher});
  std::vector<std::string> told_on_return;
  int done = 0;
  test::RunOn(state_, [&] {
    ASSERT_TRUE(releaser_.RemovePods({"uid-a", "uid-b"}, [&] { ++done; }).ok());
    told_on_return = plugins_.calls();
  });
  EXPECT_THAT(told_on_return, ElementsAre("remove cpu uid-a"));
  EXPECT_EQ(state_.Load()->FindPod("uid-b"), nullptr) << "it is forgotten at once";
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a", "remove cpu uid-b"));
  EXPECT_EQ(done, 1);
}

TEST_F(ReleaserTest, FinishesRemovalsForAnAdmissionThatNeedsTheRoom) {
  plugins_.Set("cpu", {.registered_by = RegisteredBy::kWatcher});
  int done = 0;
  test::RunOn(state_, [&] {
    ASSERT_TRUE(releaser_.RemovePods({"uid-a", "uid-b"}, [&] { ++done; }).ok());
    plugins_.ForgetCalls();
    releaser_.FinishRemovalOf("uid-x");
    EXPECT_THAT(plugins_.calls(), IsEmpty());
    EXPECT_TRUE(releaser_.FinishRemovals());
    EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a", "remove cpu uid-b"));
    EXPECT_FALSE(releaser_.FinishRemovals());
  });
  test::Settle(state_);
  EXPECT_EQ(plugins_.calls().size(), 2U) << "the former answer does not count any more";
  EXPECT_EQ(done, 1);
}

TEST_F(ReleaserTest, RemembersRemovalsForAPluginProcessThatIsNotRunning) {
  test::PluginScript away{.registered_by = RegisteredBy::kWatcher};
  away.removes = Errorf(StatusCode::kUnavailable, "the cpu plugin is not running");
  plugins_.Set("cpu", away);
  ASSERT_TRUE(RemovePods({"uid-a", "uid-b"}).ok());
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a")) << "it is waited for once";
  EXPECT_THAT(state_.Load()->pending_removals(),
              ElementsAre(Pair("uid-a", ElementsAre("cpu")), Pair("uid-b", ElementsAre("cpu"))));
}

TEST_F(ReleaserTest, WritesNothingForUnknownPods) {
  const std::size_t before = journal_.commits();
  ASSERT_TRUE(RemovePods({"uid-x"}).ok());
  EXPECT_EQ(journal_.commits(), before);
}

TEST_F(ReleaserTest, ForgetsThePodAndRemembersThePluginThatIsNotRunning) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a"}).ok());
  EXPECT_EQ(state_.Load()->FindPod("uid-a"), nullptr);
  EXPECT_THAT(state_.Load()->pending_removals(), ElementsAre(Pair("uid-a", ElementsAre("cpu"))));
}

TEST_F(ReleaserTest, WaitsOnlyOnceForAPluginThatIsNotRunning) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a", "uid-b"}).ok());
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a"));
  EXPECT_EQ(state_.Load()->pending_removals().size(), 2u);
}

TEST_F(ReleaserTest, ReplaysRemovalsWhenThePluginIsBack) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a", "uid-b"}).ok());
  plugins_.Set("cpu", {});
  plugins_.ForgetCalls();
  Replay();
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a", "remove cpu uid-b"));
  EXPECT_THAT(state_.Load()->pending_removals(), IsEmpty());
}

TEST_F(ReleaserTest, LetsOthersGoBetweenTwoReplayedRemovals) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a", "uid-b"}).ok());
  plugins_.Set("cpu", {});
  plugins_.ForgetCalls();
  std::vector<std::string> told;
  test::RunOn(state_, [&] {
    state_.Post([&] { told = plugins_.calls(); });
    releaser_.Replay("cpu", [this] { ++replayed_; });
    releaser_.Replay("cpu");
  });
  test::Settle(state_);
  EXPECT_THAT(told, ElementsAre("remove cpu uid-a")) << "a creation waits for one removal at most";
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a", "remove cpu uid-b"));
  EXPECT_EQ(replayed_, 1);
}

TEST_F(ReleaserTest, OnlyAPodThatIsBackWaitsForTheReplayOfItsRemoval) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a"}).ok());
  plugins_.Set("cpu", {});
  plugins_.ForgetCalls();
  test::RunOn(state_, [this] {
    releaser_.Replay("cpu");
    releaser_.FinishRemovalOf("uid-b");
    EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a"));
    releaser_.FinishRemovalOf("uid-a");
    EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-a", "remove cpu uid-a"));
  });
  test::Settle(state_);
  EXPECT_THAT(state_.Load()->pending_removals(), IsEmpty());
}

TEST_F(ReleaserTest, KeepsRemovalsThatCannotBeReplayedYet) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a", "uid-b"}).ok());
  Replay();
  EXPECT_EQ(state_.Load()->pending_removals().size(), 2u);
  EXPECT_EQ(replayed_, 1);
}

TEST_F(ReleaserTest, DoesNotReplayTheRemovalOfAPodThatIsBack) {
  SetAway();
  ASSERT_TRUE(RemovePods({"uid-a"}).ok());
  plugins_.Set("cpu", {});
  plugins_.ForgetCalls();
  test::RunOn(state_, [this] {
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("a"), "main", {}});
    ASSERT_TRUE(state_.Commit(change).ok());
    releaser_.Replay("cpu");
  });
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  EXPECT_THAT(state_.Load()->pending_removals(), IsEmpty());
}

TEST_F(ReleaserTest, ForgetsThePodAlsoWhenTheDiskRejects) {
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  EXPECT_TRUE(RemovePods({"uid-a"}).ok());
  EXPECT_EQ(state_.Load()->FindPod("uid-a"), nullptr);
}

}  // namespace
}  // namespace qrm::manager::releaser_test
