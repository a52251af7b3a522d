#include "scheduler/cache/cluster_cache.h"

#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/cache/filter.h"
#include "test/scheduler/cache/counted_resource.h"

namespace qrm::scheduler::cluster_cache_test {
namespace {

using test::AvailableIn;
using test::CountedHandles;
using test::kCountedDecision;
using test::kCountedObjects;
using test::kCountedRequest;
using test::MakeObject;
using test::MakePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Node n1 with room for ten, listed and empty.
class ClusterCacheTest : public testing::Test {
 protected:
  ClusterCacheTest() {
    cache_->ReplaceNodes({{.name = "n1"}}, "1");
    cache_->ReplaceObjects(kCountedObjects, {MakeObject("status", "n1", 10)}, "1");
    cache_->ReplacePods({.version = "1"});
  }

  int Available(const std::string& node = "n1") const { return AvailableIn(cache_->Dump(), node); }
  std::string Refusal(const Pod& pod, const std::string& node = "n1") {
    return RefusalOf(*cache_->Publish(), handles_, pod, node);
  }
  void Wait(const std::string& uid, int request) { cache_->SetPod(MakePod(uid, request)); }

  HandleRegistry handles_ = CountedHandles();
  std::unique_ptr<ClusterCache> cache_ = *ClusterCache::Make(handles_);
};

TEST_F(ClusterCacheTest, CountsBoundPodsUntilTheyFinish) {
  Pod pod = MakePod("a", 4, "n1");
  cache_->SetPod(pod);
  EXPECT_EQ(Available(), 6);
  pod.finished = true;
  cache_->SetPod(pod);
  EXPECT_EQ(Available(), 10);
}

TEST_F(ClusterCacheTest, KeepsOfAPodTheAnnotationsThatAreRead) {
  Pod pod = MakePod("a", 4);
  pod.annotations["notes"] = std::string(100'000, 'x');
  cache_->SetPod(pod);
  EXPECT_THAT(cache_->FindPods("a").front()->annotations, ElementsAre(Pair(kCountedRequest, "4")));
}

TEST_F(ClusterCacheTest, ReportsWhetherAPodWouldFitWithoutOthers) {
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->SetPod(MakePod("b", 5, "n1"));
  EXPECT_FALSE(cache_->FitsWithout(MakePod("c", 6), "n1", {"a"}));
  EXPECT_TRUE(cache_->FitsWithout(MakePod("c", 6), "n1", {"b"}));
  EXPECT_EQ(Available(), 1) << "they are still there";
}

TEST_F(ClusterCacheTest, NoPodFitsWithoutOthersWhereTheFilterRejectsItAnyway) {
  cache_->SetNode({.name = "silent"});
  EXPECT_FALSE(cache_->FitsWithout(MakePod("c", 1), "silent", {"a"})) << "reports nothing";
  EXPECT_FALSE(cache_->FitsWithout(MakePod("c", 1), "nowhere", {"a"})) << "is not known";
  EXPECT_TRUE(cache_->FitsWithout(MakePod("c", 0), "silent", {"a"}));
}

TEST_F(ClusterCacheTest, ARefusalLastsWhereTheNodeWithoutPodsRejectsThePodToo) {
  cache_->SetNode({.name = "silent"});
  cache_->SetPod(MakePod("a", 8, "n1"));
  const auto lasts = [&](const Pod& pod, const std::string& node) {
    return JudgeNode(*cache_->Publish(), handles_, pod, node).lasts;
  };
  EXPECT_FALSE(lasts(MakePod("c", 10), "n1"));
  EXPECT_TRUE(lasts(MakePod("c", 11), "n1"));
  EXPECT_TRUE(lasts(MakePod("c", 1), "silent"));
  EXPECT_TRUE(lasts(MakePod("c", 1), "nowhere"));
}

TEST_F(ClusterCacheTest, APodThatRequestsNothingFitsWherePodsHaveMoreThanThereIs) {
  cache_->SetPod(MakePod("a", 12, "n1"));
  EXPECT_EQ(Available(), -2);
  EXPECT_EQ(Refusal(MakePod("b", 0)), "");
  EXPECT_EQ(Refusal(MakePod("b", 1)), "not enough counted");
}

// A pod of so much priority.
Pod Important(const std::string& uid, int request, int priority, const std::string& node = "") {
  Pod pod = MakePod(uid, request, node);
  pod.priority = priority;
  return pod;
}

TEST_F(ClusterCacheTest, ANominatedPodHasItsNodeBeforePodsOfNoMorePriority) {
  Pod nominated = Important("a", 8, 5);
  nominated.nominated = "n1";
  cache_->SetPod(nominated);
  EXPECT_EQ(Refusal(Important("b", 3, 4)), "not enough counted");
  EXPECT_EQ(Refusal(Important("b", 3, 5)), "not enough counted");
  EXPECT_EQ(Refusal(Important("b", 3, 6)), "");
  EXPECT_EQ(Refusal(nominated), "");
  EXPECT_FALSE(cache_->FitsWithout(Important("b", 3, 5), "n1", {}));
  cache_->DeletePod("a", "9");
  EXPECT_EQ(Refusal(Important("b", 3, 4)), "");
}

TEST_F(ClusterCacheTest, ANominatedPodThatIsBoundCountsOnce) {
  Pod pod = Important("a", 6, 5);
  pod.nominated = "n1";
  cache_->SetPod(pod);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  EXPECT_EQ(Refusal(Important("b", 4, 0)), "");
  pod.node = "n1";
  cache_->SetPod(pod);
  EXPECT_EQ(Refusal(Important("b", 4, 0)), "");
}

TEST_F(ClusterCacheTest, TheFewestPodsOfTheLeastPriorityAreVictims) {
  for (const auto& [uid, request, priority] :
       {std::tuple("a", 3, 1), std::tuple("b", 3, 2), std::tuple("c", 3, 9)}) {
    cache_->SetPod(Important(uid, request, priority, "n1"));
  }
  const auto victims = [&](const Pod& pod) {
    std::string uids;
    const auto found = cache_->VictimsOn(pod, "n1");
    for (const PodPtr& victim : found.value_or(std::vector<PodPtr>())) {
      uids += victim->uid;
    }
    return found.has_value() ? uids : "no help";
  };
  EXPECT_EQ(victims(Important("x", 4, 5)), "a");
  EXPECT_EQ(victims(Important("x", 7, 5)), "ba");
  EXPECT_EQ(victims(Important("x", 8, 5)), "no help") << "c has more priority";
  EXPECT_EQ(victims(Important("x", 4, 1)), "no help") << "a has the same";
  EXPECT_EQ(victims(Important("x", 1, 5)), "no help") << "it fits";
  Pod ending = Important("c", 3, 9, "n1");
  ending.ending = true;
  cache_->SetPod(ending);
  EXPECT_EQ(victims(Important("x", 4, 5)), "") << "c ends already";
  EXPECT_EQ(Available(), 1) << "all are still there";
}

TEST_F(ClusterCacheTest, AVersionThatIsReachedMakesOlderChangesOld) {
  cache_->Reach(kPods, "9");
  EXPECT_EQ(cache_->Publish()->versions.at(kPods), "9");
  Pod pod = MakePod("a", 4, "n1");
  pod.resource_version = "8";
  cache_->SetPod(pod);
  EXPECT_EQ(Available(), 10);
}

TEST_F(ClusterCacheTest, CountsAPodOnceHoweverOftenItIsReported) {
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->SetPod(MakePod("a", 4, "n1"));
  EXPECT_EQ(Available(), 6);
}

TEST_F(ClusterCacheTest, LeavesOutChangesThatItHasSeen) {
  Pod pod = MakePod("a", 4, "n1");
  pod.resource_version = "7";
  cache_->SetPod(pod);
  cache_->DeletePod("a", "10");
  cache_->SetPod(pod);
  EXPECT_EQ(Available(), 10);
}

TEST_F(ClusterCacheTest, CountsAResizedPodByItsNewRequest) {
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->SetPod(MakePod("a", 6, "n1"));
  EXPECT_EQ(Available(), 4);
}

TEST_F(ClusterCacheTest, CountsAPodFromTheMomentItIsAssumed) {
  Wait("a", 4);
  EXPECT_THAT(*cache_->Assume("a", "n1"), testing::Contains(testing::Key(kCountedDecision)));
  EXPECT_EQ(Available(), 6);
}

TEST_F(ClusterCacheTest, GivesTheSameDecisionToARepeatedBinding) {
  Wait("a", 8);
  const auto first = cache_->Assume("a", "n1");
  const auto second = cache_->Assume("a", "n1");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(Available(), 2);
}

TEST_F(ClusterCacheTest, RejectsABindingThatDoesNotFitAnyMore) {
  Wait("a", 6);
  Wait("b", 6);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  const Status refused = cache_->Assume("b", "n1").status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused),
              HasSubstr("cannot bind pod ns/pod-b to node n1: not enough counted"));
}

TEST_F(ClusterCacheTest, RejectsABindingWhereKubeSchedulersViewOfTheNodeIsOlder) {
  cache_->SetNode({.name = "n1", .allocatable = {{"cpu", 4}, {"pods", 3}}});
  const auto put = [&](const std::string& uid, double cpus, const std::string& node) {
    Pod pod = MakePod(uid, 1, node);
    pod.containers = {{.name = "c", .requests = {{"cpu", cpus}, {"unheard.of/x", 9}}}};
    cache_->SetPod(pod);
  };
  put("a", 1.5, "n1");
  put("large", 2.6, "");
  put("right", 2.5, "");
  const Status refused = cache_->Assume("large", "n1").status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused),
              HasSubstr("cannot bind pod ns/pod-large to node n1: kube-scheduler has not seen"));
  EXPECT_THAT(MessageOf(refused), HasSubstr("too little cpu"));
  EXPECT_TRUE(cache_->Assume("right", "n1").ok());
  put("empty", 0, "n1");
  put("last", 0, "");
  EXPECT_THAT(MessageOf(cache_->Assume("last", "n1").status()), HasSubstr("too little pods"));
}

TEST_F(ClusterCacheTest, RejectsASecondBindingElsewhere) {
  cache_->SetNode({.name = "n2"});
  cache_->SetObject(kCountedObjects, MakeObject("other", "n2", 10));
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  const Status refused = cache_->Assume("a", "n2").status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(refused), HasSubstr("is being bound to node n1"));
}

TEST_F(ClusterCacheTest, RejectsToBindPodsThatItHasNotSeen) {
  EXPECT_EQ(cache_->Assume("nobody", "n1").status().code(), StatusCode::kUnavailable);
}

TEST_F(ClusterCacheTest, RejectsToBindToNodesThatItDoesNotKnow) {
  Wait("a", 0);
  EXPECT_THAT(MessageOf(cache_->Assume("a", "n9").status()),
              HasSubstr("the node is not known yet"));
}

TEST_F(ClusterCacheTest, ReleasesARejectedBinding) {
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->Release("a", "n1");
  EXPECT_EQ(Available(), 10);
  EXPECT_TRUE(cache_->Assume("a", "n1").ok());
}

TEST_F(ClusterCacheTest, KeepsABindingThatTheWatchConfirmedFromALateRejection) {
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->Release("a", "n1");
  EXPECT_EQ(Available(), 6);
}

TEST_F(ClusterCacheTest, MovesAPodThatAnotherSchedulerBoundElsewhere) {
  cache_->SetNode({.name = "n2"});
  cache_->SetObject(kCountedObjects, MakeObject("other", "n2", 10));
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->SetPod(MakePod("a", 4, "n2"));
  EXPECT_EQ(Available("n1"), 10);
  EXPECT_EQ(Available("n2"), 6);
}

TEST_F(ClusterCacheTest, KeepsAnAssumedPodThatTheWatchStillShowsUnbound) {
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->Accept("a");
  Wait("a", 4);
  EXPECT_EQ(Available(), 6);
}

TEST_F(ClusterCacheTest, ForgetsAnAssumedPodThatIsDeleted) {
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->DeletePod("a", "9");
  EXPECT_EQ(Available(), 10);
}

TEST_F(ClusterCacheTest, KeepsAnAssumedPodThroughAListBegunBeforeItsBinding) {
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  const uint64_t begun = cache_->BeginList();
  cache_->Accept("a");
  cache_->ReplacePods({.pods = {MakePod("a", 4)}, .version = "5", .begun = begun});
  EXPECT_EQ(Available(), 6);
}

TEST_F(ClusterCacheTest, ForgetsAnAcceptedBindingThatALaterListDoesNotShow) {
  Wait("a", 4);
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->Accept("a");
  cache_->ReplacePods({.pods = {MakePod("a", 4)}, .version = "5", .begun = cache_->BeginList()});
  EXPECT_EQ(Available(), 10);
}

TEST_F(ClusterCacheTest, ForgetsPodsThatAListDoesNotShow) {
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->ReplacePods({.pods = {MakePod("b", 1, "n1")}, .version = "5"});
  EXPECT_EQ(Available(), 9);
}

TEST_F(ClusterCacheTest, TakesAListOfAnOlderVersion) {
  Pod pod = MakePod("a", 4, "n1");
  pod.resource_version = "900";
  cache_->SetPod(pod);
  cache_->ReplacePods({.version = "20"});
  pod.resource_version = "21";
  cache_->SetPod(pod);
  EXPECT_EQ(Available(), 6);
}

TEST_F(ClusterCacheTest, ANodeThatReturnsFindsItsPods) {
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->DeleteNode("n1", "5");
  EXPECT_EQ(Refusal(MakePod("b", 1)), "the node is not known yet");
  cache_->SetNode({.name = "n1", .resource_version = "6"});
  EXPECT_EQ(Refusal(MakePod("b", 6)), "");
  EXPECT_EQ(Refusal(MakePod("b", 7)), "not enough counted");
}

TEST_F(ClusterCacheTest, CountsPodsThatComeBeforeTheirCapacity) {
  cache_->SetPod(MakePod("a", 4, "n2"));
  cache_->SetNode({.name = "n2"});
  EXPECT_EQ(Refusal(MakePod("b", 1), "n2"), "the node has not reported its counted");
  cache_->SetObject(kCountedObjects, MakeObject("other", "n2", 10));
  EXPECT_EQ(Available("n2"), 6);
}

TEST_F(ClusterCacheTest, LosesNoPodWhenTheCapacityChanges) {
  cache_->SetPod(MakePod("a", 4, "n1"));
  cache_->SetObject(kCountedObjects, MakeObject("status", "n1", 12));
  EXPECT_EQ(Available(), 8);
}

TEST_F(ClusterCacheTest, RejectsPodsThatAskForResourcesThatAreNotReportedAnyMore) {
  cache_->DeleteObject(kCountedObjects, "status", "9");
  EXPECT_EQ(Refusal(MakePod("a", 1)), "the node has not reported its counted");
  EXPECT_EQ(Refusal(MakePod("b", 0)), "");
}

TEST_F(ClusterCacheTest, ASnapshotStaysAsItWas) {
  const SnapshotPtr before = cache_->Publish();
  cache_->SetPod(MakePod("a", 10, "n1"));
  EXPECT_EQ(RefusalOf(*before, handles_, MakePod("b", 1), "n1"), "");
  EXPECT_EQ(Refusal(MakePod("b", 1)), "not enough counted");
}

TEST_F(ClusterCacheTest, ASnapshotShowsItsVersions) {
  Pod pod = MakePod("a", 1);
  pod.resource_version = "17";
  cache_->SetPod(pod);
  EXPECT_EQ(cache_->Publish()->versions,
            (VersionByKind{{"pods", "17"}, {"nodes", "1"}, {kCountedObjects, "1"}}));
}

TEST(ClusterCacheSyncTest, JudgesNothingBeforeAllListsHaveCome) {
  const HandleRegistry handles = CountedHandles();
  const auto cache = *ClusterCache::Make(handles);
  cache->ReplaceNodes({{.name = "n1"}}, "1");
  cache->ReplacePods({.pods = {MakePod("a", 1)}, .version = "1"});
  const Status early = cache->Assume("a", "n1").status();
  EXPECT_EQ(early.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(early), HasSubstr("the list of countedstatuses has not come yet"));
  cache->ReplaceObjects(kCountedObjects, {MakeObject("status", "n1", 10)}, "1");
  EXPECT_TRUE(cache->Assume("a", "n1").ok());
}

TEST(HandleRegistryTest, ASecondRegistrationGetsTheFirstHandle) {
  HandleRegistry handles;
  const auto make = [] { return std::make_unique<test::CountedHandle>(); };
  Handle& first = handles.Register("counted", make);
  EXPECT_EQ(&handles.Register("counted", make), &first);
}

}  // namespace
}  // namespace qrm::scheduler::cluster_cache_test
