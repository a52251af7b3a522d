#include "manager/runtime/live_containers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::live_containers_test {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Optional;

std::vector<std::string> Pods(
    const std::vector<std::pair<ContainerKey, LiveContainer>>& containers) {
  std::vector<std::string> pods;
  pods.reserve(containers.size());
  for (const auto& [key, container] : containers) {
    pods.push_back(key.pod_uid);
  }
  return pods;
}

TEST(LiveContainersTest, KnowsTheLatestIdOfAContainer) {
  LiveContainers live;
  const ContainerKey key{"uid", "main"};
  live.Add(key, {.id = "1", .pod_id = "sandbox"});
  live.Add(key, {.id = "2", .pod_id = "sandbox"});
  live.MarkStarted(key, "1");
  EXPECT_FALSE(live.Find(key).value_or(LiveContainer()).started);
  live.Remove(key, "1");
  EXPECT_EQ(live.Find(key).value_or(LiveContainer()).id, "2");
  live.Remove(key, "2");
  EXPECT_FALSE(live.Find(key).has_value());
}

TEST(LiveContainersTest, KnowsAPodUntilItsLastSandboxGoes) {
  LiveContainers live;
  live.AddPod("uid", "1");
  live.AddPod("uid", "2");
  EXPECT_TRUE(live.RemovePod("uid", "1"));
  EXPECT_TRUE(live.HasPod("uid"));
  EXPECT_FALSE(live.RemovePod("uid", "2"));
  EXPECT_FALSE(live.HasPod("uid"));
  EXPECT_FALSE(live.RemovePod("uid", "2"));
}

TEST(LiveContainersTest, IsSynchronizedOnceTheSandboxWasReported) {
  LiveContainers live;
  EXPECT_FALSE(live.synchronized());
  live.Reset({{"uid", {"sandbox"}}}, {});
  EXPECT_TRUE(live.synchronized());
  EXPECT_TRUE(live.HasPod("uid"));
}

TEST(LiveContainersTest, GivesTheNextOnesInTurn) {
  LiveContainers live;
  EXPECT_THAT(live.After({}, 3), IsEmpty());
  for (const char* pod : {"a", "b", "c"}) {
    live.Add({pod, "main"}, {.id = pod, .pod_id = pod});
  }
  EXPECT_THAT(Pods(live.After({}, 2)), ElementsAre("a", "b"));
  EXPECT_THAT(Pods(live.After({"b", "main"}, 2)), ElementsAre("c", "a"));
  EXPECT_THAT(Pods(live.After({"b", "zzz"}, 9)), ElementsAre("c", "a", "b")) << "each once";
}

TEST(LiveContainersTest, KnowsWhatChangedSinceARevision) {
  const ContainerKey web{"web", "main"};
  const ContainerKey db{"db", "main"};
  LiveContainers live;
  live.Add(web, {.id = "w", .pod_id = "s"});
  const uint64_t before = live.revision();
  EXPECT_THAT(live.ChangedSince(before), Optional(IsEmpty()));
  live.Add(db, {.id = "d", .pod_id = "s"});
  live.MarkStarted(db, "d");
  EXPECT_THAT(live.ChangedSince(before), Optional(ElementsAre(db)));
  live.Remove(web, "w");
  EXPECT_THAT(live.ChangedSince(before), Optional(ElementsAre(db, web)));
  live.Reset({}, {});
  EXPECT_EQ(live.ChangedSince(before), std::nullopt) << "a list may change any of them";
  const uint64_t listed = live.revision();
  for (int i = 0; i < 5000; ++i) {
    live.Add(web, {.id = "w", .pod_id = "s"});
  }
  EXPECT_EQ(live.ChangedSince(listed), std::nullopt) << "too long ago";
  EXPECT_THAT(live.ChangedSince(live.revision() - 3), Optional(ElementsAre(web)));
}

TEST(LiveContainersTest, KnowsContainersWithPendingUpdatesWhileTheyAreTheSame) {
  const ContainerKey key{"web", "main"};
  LiveContainers live;
  live.Defer(key, "old", {1});
  EXPECT_THAT(live.DeferredKeys(), IsEmpty()) << "it is unknown";
  live.Add(key, {.id = "old", .pod_id = "s"});
  live.Defer(key, "old", {1});
  live.Reset({{"web", {"s"}}}, {{key, {.id = "old", .pod_id = "s"}}});
  EXPECT_THAT(live.DeferredKeys(), ElementsAre(key)) << "a list knows nothing of it";
  live.Add(key, {.id = "new", .pod_id = "s"});
  EXPECT_THAT(live.DeferredKeys(), IsEmpty());
  live.Defer(key, "new", {1});
  live.Remove(key, "new");
  EXPECT_THAT(live.DeferredKeys(), IsEmpty());
}

TEST(LiveContainersTest, ForgetsTheDeferredOnesThatAListDoesNotName) {
  const ContainerKey key{"web", "main"};
  LiveContainers live;
  live.Add(key, {.id = "old", .pod_id = "s"});
  live.Defer(key, "old", {1});
  live.Reset({{"web", {"s"}}}, {{key, {.id = "new", .pod_id = "s"}}});
  EXPECT_THAT(live.DeferredKeys(), IsEmpty());
}

TEST(LiveContainersTest, NothingIsDeferredAnyMoreWhenTheRuntimeTookWhatTheContainerStillHas) {
  const ContainerKey key{"web", "main"};
  LiveContainers live;
  live.Add(key, {.id = "id", .pod_id = "s"});
  live.Defer(key, "id", {1});
  EXPECT_FALSE(live.BeginTelling(key, "id", {2})) << "it has other CPUs meanwhile";
  ASSERT_TRUE(live.BeginTelling(key, "id", {1}));
  live.Defer(key, "id", {2});  // an owner of CPU 1 came
  live.EndTelling(key, "id", true);
  EXPECT_THAT(live.FindDeferred(key, "id"), Optional(Field(&DeferredCpus::runtime_differs, true)));
  ASSERT_TRUE(live.BeginTelling(key, "id", {2}));
  live.EndTelling(key, "id", false);
  ASSERT_TRUE(live.BeginTelling(key, "id", {2}));
  live.EndTelling(key, "id", true);
  EXPECT_THAT(live.DeferredKeys(), IsEmpty());
}

TEST(LiveContainersTest, NamesContainersThatMayGetFormerCpusBackFromTheRuntime) {
  const ContainerKey key{"web", "main"};
  LiveContainers live;
  live.Add(key, {.id = "id", .pod_id = "s"});
  live.Defer(key, "id", {1, 2});
  EXPECT_FALSE(live.NoteTold(key, "id", {1, 2})) << "that is an update of another";
  ASSERT_TRUE(live.BeginTelling(key, "id", {1, 2}));
  EXPECT_TRUE(live.NoteTold(key, "id", {1, 2}));
  live.Defer(key, "id", {1});
  EXPECT_THAT(live.DeferredWith({2}), testing::SizeIs(1));
  EXPECT_THAT(live.DeferredWith({3}), IsEmpty());
}

// By the runtime's events, in the order of a pod's life.
TEST(LiveContainersTest, ARuntimeIsBusyWhileSomethingIsCreatedStartedOrRemoved) {
  const ContainerKey key{"web", "main"};
  LiveContainers live;
  const auto is_busy = [&] {
    return live.QuietFor(std::chrono::steady_clock::now()) == std::chrono::seconds(0);
  };
  EXPECT_FALSE(is_busy());
  live.AddPod("web", "s");
  EXPECT_TRUE(is_busy()) << "its first container is to come";
  live.Add(key, {.id = "id", .pod_id = "s"});
  EXPECT_TRUE(is_busy()) << "it has not started";
  live.MarkStarted(key, "id");
  EXPECT_FALSE(is_busy());
  live.Remove(key, "id");
  EXPECT_TRUE(is_busy()) << "its sandbox is to go";
  live.MarkStopped("web", "s");
  EXPECT_FALSE(is_busy());
  live.RemovePod("web", "s");
  EXPECT_FALSE(is_busy());
}

TEST(LiveContainersTest, ListsOverCriDisturbNoQuiet) {
  LiveContainers live;
  live.AddPod("web", "s");
  live.Add({"web", "main"}, {.id = "id", .pod_id = "s", .started = true});
  const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const auto before = live.QuietFor(later);
  live.Reset({{"web", {"s"}}}, {{{"web", "main"}, {.id = "id", .pod_id = "s", .started = true}}},
             {}, ListSource::kCri);
  EXPECT_EQ(live.QuietFor(later), before);
}

TEST(LiveContainersTest, ARuntimeIsNotBusyForLongWithOneThing) {
  LiveContainers live;
  live.AddPod("web", "s");
  const auto later = std::chrono::steady_clock::now() + LiveContainers::kLongestStep;
  EXPECT_GE(live.QuietFor(later), LiveContainers::kLongestStep - std::chrono::seconds(1));
}

TEST(LiveContainersTest, KeepsPodsThatMayStillBeThere) {
  LiveContainers live;
  live.Add({"seen", "main"}, {.id = "id", .pod_id = "sandbox"});
  live.Reset({{"listed", {"s"}}}, {{{"listed", "main"}, {.id = "new", .pod_id = "s"}}},
             {"seen", "never-seen"});
  EXPECT_THAT(live.Find({"seen", "main"}), Optional(Field(&LiveContainer::id, "id")));
  EXPECT_TRUE(live.HasPod("never-seen"));
  EXPECT_FALSE(live.RemovePod("seen", "sandbox")) << "its sandbox was kept, too";
  live.Reset({}, {});
  EXPECT_FALSE(live.HasPod("never-seen"));
}

TEST(LiveContainersTest, TrustsCriFromItsFirstListWithASandboxThatNriReported) {
  LiveContainers live;
  EXPECT_THAT(live.UnknownToCri({"other"}), IsEmpty()) << "NRI has reported nothing";
  live.Reset({{"observed", {"other"}}}, {}, {}, ListSource::kCri);
  live.AddPod("web", "sandbox");
  EXPECT_THAT(live.UnknownToCri({"other"}), IsEmpty()) << "nothing of it runs";
  live.Add({"web", "main"}, {.id = "id", .pod_id = "sandbox"});
  EXPECT_THAT(live.UnknownToCri({"other"}), ElementsAre("web"));
  EXPECT_TRUE(live.AwaitsCri());
  EXPECT_THAT(live.UnknownToCri({"other", "sandbox"}), IsEmpty());
  EXPECT_FALSE(live.AwaitsCri());
  EXPECT_THAT(live.UnknownToCri({"other"}), IsEmpty()) << "it was removed";
}

TEST(LiveContainersTest, KeepsWhatNriLeavesOutAndCriListed) {
  LiveContainers live;
  live.AddPod("told", "sandbox");
  live.AddUntold({"told", "main"}, {.id = "one", .pod_id = "sandbox", .started = true});
  live.AddUntold({"untold", "main"}, {.id = "two", .pod_id = "other", .started = true});
  EXPECT_TRUE(live.Reset({{"told", {"sandbox"}}}, {}));
  EXPECT_TRUE(live.Find({"told", "main"}).has_value());
  EXPECT_TRUE(live.Find({"untold", "main"}).has_value());
  EXPECT_THAT(live.Listed(), ElementsAre("told", "untold")) << "lists show when they end";
  live.MarkStopped("untold", "other");
  EXPECT_FALSE(live.Reset({{"told", {"sandbox"}}},
                          {{{"told", "main"}, {.id = "new", .pod_id = "sandbox"}}}));
  EXPECT_THAT(live.Find({"told", "main"}), Optional(Field(&LiveContainer::id, "new")));
  EXPECT_FALSE(live.HasPod("untold"));
}

TEST(LiveContainersTest, PodHasEndedWithItsSandboxesAndContainers) {
  LiveContainers live;
  live.Add({"uid", "main"}, {.id = "id", .pod_id = "one"});
  live.AddPod("uid", "two");
  EXPECT_TRUE(live.MarkStopped("uid", "one"));
  EXPECT_FALSE(live.MarkStopped("uid", "one")) << "no news";
  live.Remove({"uid", "main"}, "id");
  EXPECT_FALSE(live.RemoveAllEnded()) << "the other sandbox runs";
  EXPECT_TRUE(live.MarkStopped("uid", "two"));
  EXPECT_TRUE(live.RemoveAllEnded());
  EXPECT_FALSE(live.HasPod("uid"));
}

TEST(LiveContainersTest, ListThatIsOlderThanASandboxsEndDoesNotTakeItBack) {
  LiveContainers live;
  live.AddPod("uid", "sandbox");
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(live.MarkStopped("uid", "sandbox"));
  live.MarkReady("uid", "sandbox", before);
  EXPECT_TRUE(live.HasStopped("uid"));
  live.MarkReady("uid", "sandbox", std::chrono::steady_clock::time_point::max());
  EXPECT_FALSE(live.HasStopped("uid")) << "the runtime reported it too early";
}

TEST(LiveContainersTest, ReportsContainersThatEndedInTheirFirstAttempt) {
  LiveContainers live;
  const ContainerKey key{"uid", "init"};
  live.Add(key, {.id = "first", .pod_id = "sandbox"});
  live.Remove(key, "first");
  EXPECT_THAT(live.EndedOnce("uid"), IsEmpty()) << "its creation was undone";
  live.Add(key, {.id = "second", .pod_id = "sandbox"});
  EXPECT_TRUE(live.MarkStarted(key, "second"));
  EXPECT_FALSE(live.MarkStarted(key, "second")) << "no news";
  live.Remove(key, "second");
  EXPECT_THAT(live.EndedOnce("uid"), ElementsAre("init"));
  live.Add(key, {.id = "third", .pod_id = "sandbox"});
  EXPECT_TRUE(live.MarkStarted(key, "third"));
  live.Remove(key, "third");
  EXPECT_THAT(live.EndedOnce("uid"), IsEmpty()) << "it was made again";
}

TEST(LiveContainersTest, ReportsContainersThatEndedByLists) {
  LiveContainers live;
  live.Reset({{"uid", {"sandbox"}}}, {});
  live.NoteEnded({"uid", "init"}, 0);
  live.NoteEnded({"uid", "crashed"}, 0);
  live.NoteEnded({"uid", "crashed"}, 2);
  EXPECT_THAT(live.EndedOnce("uid"), ElementsAre("init"));
}

TEST(LiveContainersTest, PodIsOneOfAListUntilAnEventReportsItsSandbox) {
  LiveContainers live;
  live.Reset({{"uid", {"sandbox"}}}, {});
  EXPECT_THAT(live.Listed(), ElementsAre("uid"));
  live.AddPod("uid", "sandbox");
  EXPECT_THAT(live.Listed(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::live_containers_test
