// What authors' handles may do, and what happens when they do wrong.
#include "scheduler/cache/handle.h"

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/cache/scheduler_cache.h"
#include "test/scheduler/cache/counted_resource.h"

namespace qrm::scheduler::handle_test {
namespace {

using test::CountedHandles;
using test::CountedResource;
using test::kCountedObjects;
using test::MakeObject;
using test::MakePod;
using testing::ElementsAre;
using testing::HasSubstr;

struct Seen final : PodData {
  int number = 0;
};

/// Does what the test says.
class ScriptedHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override { return run(cache, feed); }
  void Stop() override { stop(); }
  bool Wants(const Pod& /*pod*/) const override { return false; }
  std::unique_ptr<const PodData> PreFilter(const Pod& /*pod*/,
                                           const Snapshot& /*snapshot*/) const override {
    auto data = std::make_unique<Seen>();
    data->number = ++prefilters;
    return data;
  }
  Admission Filter(const Pod& pod, const Candidate& candidate) const override {
    return filter(pod, candidate);
  }
  std::optional<int> Score(const Pod& /*pod*/, const Candidate& /*candidate*/) const override {
    return score;
  }
  Status Reserve(const Pod& pod, const std::string& node) override {
    reserved.insert(pod.uid + " on " + node);
    return reserve;
  }
  void Unreserve(const Pod& pod, const std::string& node) override {
    reserved.erase(pod.uid + " on " + node);
  }

  std::function<Status(ExtendedCache&, Feed&)> run = [](ExtendedCache&, Feed&) {
    return OkStatus();
  };
  std::function<void()> stop = [] {};
  std::function<Admission(const Pod&, const Candidate&)> filter = [](const Pod&, const Candidate&) {
    return Admission();
  };
  std::optional<int> score;
  Status reserve;
  std::set<std::string> reserved;
  mutable int prefilters = 0;
};

// Node n1 with room for ten of the resource counted, and a handle beside it.
class HandleTest : public testing::Test {
 protected:
  void MakeCache() {
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplaceNodes({{.name = "n1"}, {.name = "n2"}}, "1");
    cache_->ReplaceObjects(kCountedObjects, {MakeObject("1", "n1", 10), MakeObject("2", "n2", 10)},
                           "1");
    cache_->ReplacePods({.version = "1"});
  }
  std::string Refusal(const Pod& pod) { return RefusalOf(*cache_->Publish(), handles_, pod, "n1"); }

  HandleRegistry handles_ = CountedHandles();
  ScriptedHandle& handle_ = static_cast<ScriptedHandle&>(
      handles_.Register("scripted", [] { return std::make_unique<ScriptedHandle>(); }));
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(HandleTest, ReadsTheResourcesOfOtherHandlesInTheSameSnapshot) {
  handle_.filter = [](const Pod&, const Candidate& candidate) {
    const auto* const counted = candidate.GetExtendedResource<CountedResource>("counted");
    return Admission{.refusal = counted->available() < 5 ? "too few are left" : ""};
  };
  MakeCache();
  const SnapshotPtr before = cache_->Publish();
  cache_->SetPod(MakePod("a", 6, "n1"));
  EXPECT_EQ(RefusalOf(*before, handles_, MakePod("b", 1), "n1"), "");
  EXPECT_EQ(Refusal(MakePod("b", 1)), "too few are left");
  EXPECT_TRUE(cache_->FitsWithout(MakePod("b", 1), "n1", {"a"})) << "as the node would be then";
}

TEST_F(HandleTest, PreFilterComputesOnceForAllNodesOfACall) {
  handle_.filter = [](const Pod&, const Candidate& candidate) {
    const auto& seen = dynamic_cast<const Seen&>(*candidate.data);
    return Admission{.requested = static_cast<double>(seen.number), .available = 1};
  };
  MakeCache();
  const SnapshotPtr snapshot = cache_->Publish();
  const Pod pod = MakePod("a", 1);
  HandleCall call;
  const PodJudge judge(*snapshot, handles_, pod, call);
  EXPECT_EQ(judge.Judge("n1").why, "");
  EXPECT_EQ(judge.Judge("n2").why, "");
  EXPECT_EQ(handle_.prefilters, 1);
}

TEST_F(HandleTest, ScoresBesideItsResources) {
  handle_.score = 70;
  MakeCache();
  const Pod pod = MakePod("a", 1);
  HandleCall call;
  EXPECT_EQ(PodJudge(*cache_->Publish(), handles_, pod, call).ScoreOf("n1"), 70);
}

TEST_F(HandleTest, ReservesForAnAssumedPodUntilItsBindingIsRejected) {
  MakeCache();
  cache_->SetPod(MakePod("a", 1));
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  EXPECT_THAT(handle_.reserved, ElementsAre("a on n1"));
  cache_->Release("a", "n1");
  EXPECT_THAT(handle_.reserved, ElementsAre());
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->SetPod(MakePod("a", 1, "n1"));
  EXPECT_THAT(handle_.reserved, ElementsAre("a on n1")) << "it is bound";
}

TEST_F(HandleTest, UnreservesWhenAnotherSchedulerBoundThePodElsewhere) {
  MakeCache();
  cache_->SetPod(MakePod("a", 1));
  ASSERT_TRUE(cache_->Assume("a", "n1").ok());
  cache_->SetPod(MakePod("a", 1, "n2"));
  EXPECT_THAT(handle_.reserved, ElementsAre());
}

TEST_F(HandleTest, ABindingThatItCannotReserveForIsRejected) {
  handle_.reserve = Errorf(StatusCode::kResourceExhausted, "no licence is left");
  MakeCache();
  cache_->SetPod(MakePod("a", 1));
  EXPECT_THAT(MessageOf(cache_->Assume("a", "n1").status()),
              HasSubstr("cannot bind pod ns/pod-a to node n1: no licence is left"));
  EXPECT_EQ(cache_->AssumedOn("a"), "");
}

TEST_F(HandleTest, WhatItThrowsFiltersOrPassesAndIsCounted) {
  handle_.filter = [](const Pod&, const Candidate&) -> Admission {
    throw std::runtime_error("no such table");
  };
  MakeCache();
  EXPECT_EQ(Refusal(MakePod("a", 1)), "the resource scripted does not work");
  handles_.guard().failing = WhenUnknown::kPass;
  EXPECT_EQ(Refusal(MakePod("a", 1)), "");
  EXPECT_EQ(Refusal(MakePod("a", 11)), "not enough counted") << "others judge";
  EXPECT_GE(handles_.guard().counts().at("scripted").threw, 3U);
}

TEST_F(HandleTest, WhatASubscriptionThrowsEndsNothing) {
  handle_.run = [](ExtendedCache&, Feed& feed) {
    feed.SubscribeNodes([](const std::string&, const Node*) { throw 7; });
    return OkStatus();
  };
  MakeCache();
  EXPECT_EQ(Refusal(MakePod("a", 10)), "");
  EXPECT_EQ(handles_.guard().counts().at("scripted").threw, 2U);
}

/// Throws when a pod comes.
class BrokenResource final : public ExtendedResource {
 public:
  void AddPod(const Pod& /*pod*/) override { throw std::runtime_error("broken"); }
  void RemovePod(const Pod& /*pod*/) override {}
  Admission AdmitPod(const Pod& /*pod*/) const override { return {}; }
  std::unique_ptr<ExtendedResource> Clone() const override {
    return std::make_unique<BrokenResource>();
  }
  nlohmann::json Dump() const override { return "broken"; }
};

TEST_F(HandleTest, AResourceThatThrowsIsNotReportedAnyMore) {
  handle_.run = [](ExtendedCache& cache, Feed&) {
    cache.SetExtendedResource("n1", std::make_shared<BrokenResource>());
    return OkStatus();
  };
  MakeCache();
  EXPECT_THAT(cache_->Dump(), HasSubstr("broken"));
  cache_->SetPod(MakePod("a", 4, "n1"));
  EXPECT_THAT(cache_->Dump(), testing::Not(HasSubstr("broken")));
  EXPECT_EQ(test::AvailableIn(cache_->Dump(), "n1"), 6) << "others have the pod";
}

TEST_F(HandleTest, NodesThatReportNothingFilterOrPassAndAreCounted) {
  MakeCache();
  cache_->DeleteObject(kCountedObjects, "1", "");
  EXPECT_EQ(Refusal(MakePod("a", 1)), "the node has not reported its counted");
  handles_.guard().unknown = WhenUnknown::kPass;
  EXPECT_EQ(Refusal(MakePod("a", 1)), "");
  EXPECT_EQ(handles_.guard().counts().at("counted").unknown, 2U);
  EXPECT_EQ(Refusal(MakePod("a", 0)), "");
  EXPECT_EQ(handles_.guard().counts().at("counted").unknown, 2U) << "requests nothing";
}

/// Of a resource that qrmd publishes in annotations of its Node.
class PublishedHandle final : public Handle {
 public:
  Status Run(ExtendedCache& cache, Feed& feed) override {
    feed.SubscribeNodes([&cache](const std::string& name, const Node* node) {
      cache.SetExtendedResource(name,
                                node == nullptr ? nullptr : std::make_shared<CountedResource>(10));
    });
    return OkStatus();
  }
  bool Wants(const Pod& pod) const override { return pod.name != "pod-idle"; }
  bool IsPublishedByNode() const override { return true; }
};

class SilentNodeTest : public testing::Test {
 protected:
  SilentNodeTest() {
    handles_.Register("counted", [] { return std::make_unique<PublishedHandle>(); });
    handles_.guard().published_within = std::chrono::hours(1);
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplacePods({.version = "1"});
    Publish("10:00");
  }
  void Publish(const std::string& at) {
    Node node{.name = "n1"};
    if (!at.empty()) {
      node.annotations = {{kNodePublished, at}};
    }
    cache_->ReplaceNodes({std::move(node)}, "1");
  }
  std::string Refusal(const std::string& pod) {
    return RefusalOf(*cache_->Publish(), handles_, MakePod(pod, 1), "n1");
  }
  auto Heard() { return cache_->Publish()->Find("n1")->heard; }

  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(SilentNodeTest, WhatASilentNodePublishedFiltersOrPassesAndIsCounted) {
  EXPECT_EQ(Refusal("a"), "") << "it was heard within the hour";
  handles_.guard().published_within = std::chrono::milliseconds(-1);
  EXPECT_EQ(Refusal("a"),
            "the node's qrmd is silent, so its counted may be old; see whether it runs");
  EXPECT_EQ(Refusal("idle"), "") << "requests nothing";
  EXPECT_EQ(handles_.guard().counts().at("counted").unknown, 1U);
  handles_.guard().unknown = WhenUnknown::kPass;
  EXPECT_EQ(Refusal("a"), "");
  EXPECT_EQ(handles_.guard().counts().at("counted").unknown, 2U);
}

TEST_F(SilentNodeTest, ANodeIsHeardOfWhenItsSignOfLifeChanges) {
  const auto first = Heard();
  ASSERT_TRUE(first.has_value());
  Publish("10:00");
  EXPECT_EQ(Heard(), first) << "kubelet wrote the Node, qrmd did not";
  Publish("10:05");
  EXPECT_GT(Heard(), first);
}

TEST_F(SilentNodeTest, ANodeWhoseQrmdGivesNoSignsOfLifeIsNeverSilent) {
  Publish("");
  handles_.guard().published_within = std::chrono::milliseconds(-1);
  EXPECT_EQ(Refusal("a"), "");
}

TEST_F(HandleTest, FollowsAllObjectsOfAnyResource) {
  std::map<std::string, std::string> seen;
  handle_.run = [&seen](ExtendedCache&, Feed& feed) {
    feed.SubscribeObjects("ns/configmaps.v1",
                          [&seen](const std::string& name, const nlohmann::json* body) {
                            seen[name] = body == nullptr ? "gone" : TextAt(*body, "/data/a");
                          });
    return OkStatus();
  };
  MakeCache();
  const auto object = [](const std::string& name, const std::string& text) {
    return Object{
        .name = name,
        .body = std::make_shared<const nlohmann::json>(nlohmann::json{{"data", {{"a", text}}}})};
  };
  cache_->ReplaceObjects("ns/configmaps.v1", {object("ns/x", "1"), object("ns/y", "2")}, "1");
  EXPECT_THAT(seen, ElementsAre(testing::Pair("ns/x", "1"), testing::Pair("ns/y", "2")));
  cache_->SetObject("ns/configmaps.v1", object("ns/x", "3"));
  cache_->DeleteObject("ns/configmaps.v1", "ns/y", "");
  EXPECT_THAT(seen, ElementsAre(testing::Pair("ns/x", "3"), testing::Pair("ns/y", "gone")));
}

TEST_F(HandleTest, ADeletedPodLeavesAllResourcesByOneEvent) {
  handle_.run = [](ExtendedCache& cache, Feed&) {
    cache.SetExtendedResource("n1", std::make_shared<CountedResource>(20));
    return OkStatus();
  };
  MakeCache();
  const std::string before = cache_->Dump();
  cache_->SetPod(MakePod("a", 4, "n1"));
  EXPECT_THAT(cache_->Dump(), HasSubstr(R"("available": 16)"));
  EXPECT_EQ(test::AvailableIn(cache_->Dump(), "n1"), 6);
  cache_->DeletePod("a", "");
  EXPECT_EQ(cache_->Dump(), before);
}

TEST_F(HandleTest, SeesTheLabelsOfNodes) {
  std::string zone;
  handle_.run = [&zone](ExtendedCache&, Feed& feed) {
    feed.SubscribeNodes([&zone](const std::string&, const Node* node) {
      if (const auto label = node->labels.find("zone"); label != node->labels.end()) {
        zone = label->second;
      }
    });
    return OkStatus();
  };
  MakeCache();
  cache_->SetNode(
      *ReadNode(nlohmann::json::parse(R"({"metadata": {"name": "n1", "labels": {"zone": "a"}}})")));
  EXPECT_EQ(zone, "a");
}

TEST_F(HandleTest, ItsThreadsPostToTheCacheUntilItStops) {
  std::thread telemetry;
  handle_.run = [&telemetry](ExtendedCache& cache, Feed&) {
    telemetry = std::thread([&cache] {
      cache.Post([](ExtendedCache& now) {
        now.SetExtendedResource("n1", std::make_shared<CountedResource>(3));
      });
    });
    return OkStatus();
  };
  handle_.stop = [&telemetry] { telemetry.join(); };
  const auto cache = *SchedulerCache::Make(handles_);
  cache->Run([](ClusterCache& now) { now.ReplaceNodes({{.name = "n1"}}, "1"); });
  EXPECT_TRUE(cache->AwaitVersion(kPosted, "1",
                                  std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  EXPECT_EQ(JudgeNode(*cache->Load(), handles_, MakePod("a", 1), "n1").why,
            "the node has not reported its counted");
  EXPECT_THAT(cache->Dump(), HasSubstr(R"("scripted")"));
}

}  // namespace
}  // namespace qrm::scheduler::handle_test
