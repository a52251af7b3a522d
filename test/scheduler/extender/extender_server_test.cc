// The extender in kube-scheduler's view.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "scheduler/extender/cluster_feed.h"
#include "test/scheduler/extender/extender_server_fixture.h"

namespace qrm::scheduler::extender_server_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNodeConfig[] =
    R"({machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1",
        topology-policy: single-numa-node, plugins: {cpu: {reserved-cpus: "0", static: true}}})";

TEST_F(ExtenderServerTest, NodesWithoutRoomAreRejectedWithAReason) {
  PutPod("a", 5);
  StartReady();
  const json answer = Filter("a");
  EXPECT_EQ(answer["NodeNames"], json::array({"n1"}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], (json{{"n2", "not enough fake"}}));
  EXPECT_EQ(answer["Error"], "");
}

TEST_F(ExtenderServerTest, NoVictimsAreLookedForOnNodesThatRejectThePodWhateverEnds) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  const json answer = Filter("b");
  EXPECT_EQ(answer["FailedNodes"], (json{{"n1", "not enough fake"}}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], (json{{"n2", "not enough fake"}}));
}

// The requests that test/e2e/scheduler.sh recorded, unchanged.
TEST_F(ExtenderServerTest, TheCallsOfARealKubeSchedulerAreAnswered) {
  const auto body_of = [](const std::string& verb) {
    std::ifstream file("test/vectors/extender/" + verb + ".json");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto replay = [&](const std::string& verb) {
    return json::parse(Exchange(server_->port(), "POST /" + verb, body_of(verb)));
  };
  const json pod = json::parse(body_of("filter"))["Pod"];
  const json urgent = json::parse(body_of("preempt"))["Pod"];
  const auto version_of = [](const json& any) {
    return std::stoull(any["metadata"]["resourceVersion"].get<std::string>());
  };
  PutCapacity("n2", 0);
  while (cluster_.version() < std::max(version_of(pod), version_of(urgent))) {
    PutCapacity("n1", 1);
  }
  cluster_.Put(kPodsPath, pod);
  cluster_.Put(kPodsPath, urgent);
  StartReady();
  EXPECT_EQ(replay("filter")["NodeNames"], json::array({"n1"}));
  EXPECT_EQ(replay("prioritize"),
            json::parse(R"([{"Host":"n2","Score":0},{"Host":"n1","Score":0}])"));
  const json victims = replay("preempt")["NodeNameToMetaVictims"];
  EXPECT_TRUE(victims.contains("n1") && victims.size() == 1) << victims;
  EXPECT_EQ(replay("bind"), (json{{"Error", ""}}));
  EXPECT_EQ(cluster_.Find(kPodsPath, "default/p13")["spec"]["nodeName"], "n1");
}

TEST_F(ExtenderServerTest, WhatHasNotBeenListedIsAnErrorAndNoRejection) {
  PutPod("a", 1);
  cluster_.Refuse(1'000'000, 503);
  Start();
  const json answer = Filter("a");
  EXPECT_THAT(answer["Error"].get<std::string>(), HasSubstr("has not come yet"));
  EXPECT_THAT(answer["FailedNodes"], IsEmpty());
}

TEST_F(ExtenderServerTest, APodThatWeHaveNotSeenAsTheSchedulerHasIsAnError) {
  PutPod("a", 1);
  StartReady();
  json pod = PodIn("a");
  pod["metadata"]["resourceVersion"] = "99999999";
  const json answer = Ask("filter", {{"Pod", pod}, {"NodeNames", {"n1"}}});
  EXPECT_THAT(answer["Error"].get<std::string>(),
              HasSubstr("has not been seen at version 99999999"));
}

TEST_F(ExtenderServerTest, ABoundPodCountsForTheNextOne) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  EXPECT_EQ(Bind("a", "n1"), "");
  EXPECT_EQ(NodeOf("a"), "n1");
  EXPECT_EQ(Filter("b")["NodeNames"], json::array());
  EXPECT_THAT(Bind("b", "n1"), HasSubstr("not enough fake"));
  EXPECT_EQ(NodeOf("b"), "");
}

TEST_F(ExtenderServerTest, ABindingByAnOlderViewOfTheNodeIsRejectedAtOnceAndCounted) {
  json large = PodObject("large", 0);
  large["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "5"}}}};
  json other = large;
  other["metadata"]["name"] = "other";
  other["metadata"]["uid"] = "uid-other";
  other["spec"]["nodeName"] = "n1";
  cluster_.Put(kPodsPath, large);
  cluster_.Put(kPodsPath, other);
  StartReady();
  EXPECT_THAT(Bind("large", "n1"), HasSubstr("by which the node has too little cpu"));
  EXPECT_EQ(Bindings(), 0);
  EXPECT_THAT(Get(server_->monitor_port(), "/metrics"),
              HasSubstr(R"(qrm_scheduler_calls_total{call="bind",result="refused"} 1)"));
  EXPECT_EQ(Bind("large", "n2"), "");
}

TEST_F(ExtenderServerTest, TheDecisionIsWrittenWithTheBinding) {
  json pod = PodObject("a", 0);
  pod["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "2"}, {"memory", "1Gi"}}}};
  cluster_.Put(kPodsPath, pod);
  cluster_.Put(
      kNodesPath,
      {{"metadata", {{"name", "n1"}, {"annotations", {{"qrm.io/node-config", kNodeConfig}}}}}});
  StartReady({"numa"});
  EXPECT_EQ(Bind("a", "n1"), "");
  EXPECT_TRUE(PodIn("a")["metadata"]["annotations"].contains("qrm.io/placement")) << PodIn("a");
}

TEST_F(ExtenderServerTest, PodsAreListedAgainWhenANodeNamesAnAnnotationThatWasNotKept) {
  const auto lists = [this] {
    const std::vector<std::string> requests = cluster_.requests();
    return std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
      return request.starts_with("GET /api/v1/pods?limit=500");
    });
  };
  StartReady({"numa"});
  const auto before = lists();
  const std::string config =
      "{main-container-annotation: test/main, " + std::string(kNodeConfig).substr(1);
  cluster_.Put(kNodesPath,
               {{"metadata", {{"name", "n1"}, {"annotations", {{"qrm.io/node-config", config}}}}}});
  EXPECT_TRUE(Await([&] { return lists() > before; })) << before;
}

TEST_F(ExtenderServerTest, OfManyAtOnceExactlyAsManyAsFitAreBound) {
  constexpr int kMany = 24;
  for (int i = 0; i < kMany; ++i) {
    PutPod("p" + std::to_string(i), 1);
  }
  StartReady();
  std::vector<std::thread> callers;
  callers.reserve(kMany);
  std::atomic<int> done = 0;
  for (int i = 0; i < kMany; ++i) {
    callers.emplace_back([&, i] { done += Bind("p" + std::to_string(i), "n1").empty() ? 1 : 0; });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  int bound = 0;
  for (int i = 0; i < kMany; ++i) {
    bound += NodeOf("p" + std::to_string(i)).empty() ? 0 : 1;
  }
  EXPECT_EQ(done, 10);
  EXPECT_EQ(bound, 10);
  EXPECT_TRUE(CacheEqualsARebuild());
}

TEST_F(ExtenderServerTest, AWebPageBindsNoPodAndReadsNothing) {
  PutPod("a", 1);
  StartReady();
  const std::string bind =
      R"({"PodName": "a", "PodNamespace": "d", "PodUID": "uid-a", "Node": "n1"})";
  const auto ask = [&](const std::string& head, const std::string& fields) {
    return Exchange(server_->port(), head, head == "POST /bind" ? bind : "", fields);
  };
  const std::string json_type = "Content-Type: application/json\r\n";
  EXPECT_THAT(ask("POST /bind", "Host: localhost\r\nContent-Type: text/plain\r\n"),
              HasSubstr("cannot read a body of type text/plain"));
  EXPECT_THAT(ask("POST /bind", "Host: localhost\r\nOrigin: http://evil.test\r\n" + json_type),
              HasSubstr("cannot answer a web page"));
  EXPECT_THAT(ask("POST /bind", "Host: evil.test:9755\r\n" + json_type),
              HasSubstr("cannot answer under the name evil.test:9755"));
  EXPECT_THAT(ask("GET /dump", "Host: evil.test\r\n"), HasSubstr("cannot answer under the name"));
  EXPECT_EQ(NodeOf("a"), "");
  EXPECT_THAT(Get(server_->monitor_port(), "/metrics"),
              HasSubstr(R"(qrm_scheduler_rejected_inputs_total{kind="web_page"} 4)"));
  EXPECT_TRUE(Await([&] {  // the leader binds once it has listed the pods
    return ask("POST /bind", "Host: 127.0.0.1:1\r\n" + json_type).find(R"("Error":"")") !=
           std::string::npos;
  }));
}

TEST_F(ExtenderServerTest, ABindingWhoseAnswerWasLostIsAskedForAgain) {
  PutPod("a", 8);
  StartReady();
  cluster_.LoseAnswers(2);
  EXPECT_EQ(Bind("a", "n1"), "");
  EXPECT_EQ(NodeOf("a"), "n1");
}

TEST_F(ExtenderServerTest, APodCountsWhileItsBindingIsUnknown) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  cluster_.HoldWrites();
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("the API server has not answered yet"));
  EXPECT_THAT(Bind("b", "n1"), HasSubstr("not enough fake"));
  cluster_.LetWritesGo();
  EXPECT_TRUE(Await([&] { return NodeOf("a") == "n1"; }));
}

TEST_F(ExtenderServerTest, APodThatAnotherSchedulerBoundLeavesItsRoom) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  cluster_.HoldWrites();
  std::thread other([&] {
    json pod = PodIn("a");
    pod["spec"]["nodeName"] = "n2";
    Await([&] { return Bindings() > 0; });
    cluster_.Put(kPodsPath, pod);
    cluster_.LetWritesGo();
  });
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("already assigned to node"));
  other.join();
  EXPECT_EQ(Bind("b", "n1"), "");
}

TEST_F(ExtenderServerTest, AGrowthThatOnlyTheCustomResourceReportsMakesRoom) {
  PutPod("a", 12);
  StartReady();
  EXPECT_EQ(Filter("a")["NodeNames"], json::array());
  PutCapacity("n1", 12);
  EXPECT_TRUE(Await([&] { return Filter("a")["NodeNames"] == json::array({"n1"}); }));
}

TEST_F(ExtenderServerTest, OnlyNodesWhereItHelpsAreLeftForPreemption) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  const json victims = {{"Pods", {{{"UID", "uid-a"}}}}, {"NumPDBViolations", 0}};
  const json answer =
      Ask("preempt",
          {{"Pod", PodIn("b")}, {"NodeNameToMetaVictims", {{"n1", victims}, {"n2", victims}}}});
  EXPECT_EQ(answer["NodeNameToMetaVictims"], (json{{"n1", victims}}));
}

json Important(const std::string& name, int request, int priority) {
  json pod = PodObject(name, request);
  pod["spec"]["priority"] = priority;
  return pod;
}

TEST_F(ExtenderServerTest, APodEndsWhereOnlyAnExtendedResourceIsShort) {
  preemption_ = true;
  PutPod("a", 8);
  cluster_.Put(kPodsPath, Important("b", 8, 10));
  cluster_.Put(kPodsPath, Important("c", 8, 5));
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  ASSERT_EQ(Filter("b")["NodeNames"], json::array());
  ASSERT_TRUE(Await([&] { return PodIn("a").is_null(); }));
  EXPECT_EQ(PodIn("b")["status"]["nominatedNodeName"], "n1");
  ASSERT_TRUE(Await([&] { return Filter("b")["NodeNames"] == json::array({"n1"}); }));
  EXPECT_EQ(Filter("c")["NodeNames"], json::array()) << "b has that room";
  EXPECT_TRUE(Await([&] {  // counted when the API server has answered
    return Get(server_->monitor_port(), "/metrics")
               .find(R"(qrm_scheduler_preempted_pods_total{result="ok"} 1)") != std::string::npos;
  }));
}

TEST_F(ExtenderServerTest, NoPodEndsForOneThatMayNotPreempt) {
  preemption_ = true;
  PutPod("a", 8);
  json polite = Important("b", 8, 10);
  polite["spec"]["preemptionPolicy"] = "Never";
  cluster_.Put(kPodsPath, polite);
  cluster_.Put(kPodsPath, Important("c", 9, 5));
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  Filter("b");
  Filter("c");
  ASSERT_TRUE(Await([&] { return PodIn("a").is_null(); }));
  EXPECT_FALSE(PodIn("b").contains(json::json_pointer("/status/nominatedNodeName")));
  EXPECT_EQ(PodIn("c")["status"]["nominatedNodeName"], "n1");
}

/// Does not return from Filter until it may.
class BlockingHandle final : public Handle {
 public:
  explicit BlockingHandle(std::shared_future<void> may) : may_(std::move(may)) {}
  Status Run(ExtendedCache& /*cache*/, Feed& /*feed*/) override { return OkStatus(); }
  bool Wants(const Pod& /*pod*/) const override { return false; }
  Admission Filter(const Pod& /*pod*/, const Candidate& /*candidate*/) const override {
    may_.wait();
    return {};
  }

 private:
  const std::shared_future<void> may_;
};

class BlockedResourceTest : public ExtenderServerTest {
 protected:
  BlockedResourceTest() {
    factories_["slow"] = [this] { return std::make_unique<BlockingHandle>(may_); };
    PutPod("a", 5);
  }
  void TearDown() override { Return(); }
  void Return() {
    if (!std::exchange(returned_, true)) {
      let_.set_value();
    }
  }

  std::promise<void> let_;
  std::shared_future<void> may_ = let_.get_future().share();
  bool returned_ = false;
};

TEST_F(BlockedResourceTest, IsNamedAndRejectsWithinADeadlineUntilItReturns) {
  StartReady({"fake", "slow"});
  for (int i = 0; i < 4; ++i) {  // more calls than threads
    EXPECT_EQ(Filter("a")["FailedAndUnresolvableNodes"]["n1"], "the resource slow does not work");
  }
  EXPECT_THAT(
      Get(server_->monitor_port(), "/metrics"),
      HasSubstr(R"(qrm_scheduler_resource_failures_total{resource="slow",kind="blocked"} 1)"));
  Return();
  EXPECT_TRUE(Await([&] { return Filter("a")["NodeNames"] == json::array({"n1"}); }));
}

TEST_F(BlockedResourceTest, IsLeftOutWhenFailingResourcesPass) {
  failing_ = WhenUnknown::kPass;
  StartReady({"fake", "slow"});
  EXPECT_EQ(Filter("a")["NodeNames"], json::array({"n1"}));
  EXPECT_EQ(Filter("a")["FailedAndUnresolvableNodes"], (json{{"n2", "not enough fake"}}))
      << "others judge";
}

TEST_F(ExtenderServerTest, NodesThatReportNothingPassWhenTheyAreTo) {
  cluster_.Put(kNodesPath, {{"metadata", {{"name", "n3"}}}});
  PutPod("a", 5);
  unknown_ = WhenUnknown::kPass;
  StartReady();
  const json about_n3 = {{"Pod", PodIn("a")}, {"Nodes", nullptr}, {"NodeNames", {"n3"}}};
  EXPECT_EQ(Ask("filter", about_n3)["NodeNames"], json::array({"n3"}));
  EXPECT_THAT(Get(server_->monitor_port(), "/metrics"),
              HasSubstr(R"(qrm_scheduler_unknown_nodes_total{resource="fake"} 1)"));
}

TEST(CollectionPathTest, NamesCustomResourcesAndThoseOfKubernetes) {
  EXPECT_EQ(*CollectionPath("things.v1.test.io"), "/apis/test.io/v1/things");
  EXPECT_EQ(*CollectionPath("ns/things.v1.test.io"), "/apis/test.io/v1/namespaces/ns/things");
  EXPECT_EQ(*CollectionPath("configmaps.v1"), "/api/v1/configmaps");
  EXPECT_EQ(*CollectionPath("ns/configmaps.v1"), "/api/v1/namespaces/ns/configmaps");
  for (const char* wrong : {"things", "things.", ".v1", "things.test.io."}) {
    EXPECT_FALSE(CollectionPath(wrong).ok()) << wrong;
  }
}

TEST_F(ExtenderServerTest, AReplicaWithoutTheLeaseBindsNothing) {
  PutPod("a", 1);
  cluster_.Put(kLeases,
               {{"metadata", {{"namespace", "qrm"}, {"name", "qrm-scheduler"}}},
                {"spec", {{"holderIdentity", "another"}, {"leaseDurationSeconds", 3600}}}});
  Start();
  EXPECT_TRUE(Await([&] { return Filter("a")["NodeNames"].size() == 2; })) << "it judges";
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("another qrm-scheduler holds lease"));
  EXPECT_THAT(Get(server_->monitor_port(), "/readyz"), HasSubstr("holds lease"));
}

TEST_F(ExtenderServerTest, AStoppingReplicaGivesTheLeaseUp) {
  StartReady();
  server_.reset();
  EXPECT_EQ(cluster_.Find(kLeases, "qrm/qrm-scheduler")["spec"]["holderIdentity"], "");
}

TEST_F(ExtenderServerTest, AfterCutsAndForgottenHistoryTheCacheEqualsARebuild) {
  for (int i = 0; i < 6; ++i) {
    PutPod("p" + std::to_string(i), 1);
  }
  StartReady();
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(Bind("p" + std::to_string(i), "n1"), "");
    if (i % 2 == 0) {
      cluster_.CutWatches();
    } else {
      cluster_.ForgetHistory();
      cluster_.CutWatches();
    }
  }
  cluster_.Delete(kPodsPath, "d/p0");
  EXPECT_TRUE(CacheEqualsARebuild());
}

TEST_F(ExtenderServerTest, ComparisonsComeOneAtATimeAndNoFilterWaitsForThem) {
  PutPod("a", 1);
  StartReady();
  const std::size_t before = cluster_.requests().size();
  cluster_.Refuse(1'000'000, 503);  // so that it does not end
  auto comparison =
      std::async(std::launch::async, [this] { return Get(server_->port(), "/dump?compare"); });
  ASSERT_TRUE(Await([&] {
    const std::vector<std::string> requests = cluster_.requests();
    return std::any_of(
        requests.begin() + static_cast<std::ptrdiff_t>(before), requests.end(),
        [](const std::string& request) { return request.starts_with("GET /api/v1/nodes?limit"); });
  }));
  EXPECT_THAT(Get(server_->port(), "/dump?compare"), HasSubstr("another comparison is under way"));
  EXPECT_EQ(Filter("a")["NodeNames"].size(), 2);
  EXPECT_EQ(comparison.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  cluster_.Refuse(0, 0);
  EXPECT_EQ(json::parse(comparison.get()), (json{{"equal", true}}));
}

TEST_F(ExtenderServerTest, PodsAndNodesAreWatchedOnceForAllResources) {
  lease_name_ = "";  // a new leader lists the pods again
  StartReady({"fake", "numa", "classes"});
  for (const char* path : {"GET /api/v1/pods?", "GET /api/v1/nodes?"}) {
    const auto watches = [&] {
      const std::vector<std::string> requests = cluster_.requests();
      return std::count_if(requests.begin(), requests.end(), [&](const std::string& request) {
        return request.starts_with(path) && request.find("watch=") != std::string::npos;
      });
    };
    EXPECT_TRUE(Await([&] { return watches() == 1; })) << path << watches();
  }
}

TEST_F(ExtenderServerTest, CallsAreCounted) {
  PutPod("a", 100);
  StartReady();
  Filter("a");
  const std::string metrics = Get(server_->monitor_port(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr(R"(qrm_scheduler_calls_total{call="filter",result="refused"} 1)"));
  EXPECT_THAT(metrics, HasSubstr(R"(qrm_scheduler_lists_total{kind="nodes"} 1)"));
  EXPECT_EQ(Get(server_->monitor_port(), "/healthz"), "ok\n");
}

TEST_F(ExtenderServerTest, APodThatNoNodeFitsIsWokenWhenACustomResourceMakesRoom) {
  PutPod("large", 30);
  PutPod("a", 12);
  StartReady();
  Filter("large");
  Filter("a");
  PutCapacity("n2", 20);
  EXPECT_TRUE(Await([&] { return IsWoken("a"); }));
  EXPECT_FALSE(IsWoken("large"));
  EXPECT_TRUE(Await([&] {  // counted when the API server has answered
    return Get(server_->monitor_port(), "/metrics")
               .find(R"(qrm_scheduler_wakes_total{result="ok"} 1)") != std::string::npos;
  }));
}

TEST_F(ExtenderServerTest, AChangeOfNodesThatMakesNoRoomWakesNoPod) {
  PutPod("a", 12);
  PutPod("b", 12);
  StartReady();
  Filter("a");
  PutNode("n3", 11);
  cluster_.Put(kNodesPath, {{"metadata", {{"name", "n1"}, {"annotations", {{"k", "v"}}}}}});
  const json about_n3 = {{"Pod", PodIn("b")}, {"Nodes", nullptr}, {"NodeNames", {"n3"}}};
  ASSERT_TRUE(Await([&] {  // nodes and capacities come on separate watches
    return Ask("filter", about_n3)["FailedAndUnresolvableNodes"] == json{{"n3", "not enough fake"}};
  }));
  Filter("b");
  PutCapacity("n3", 12);  // both fit
  ASSERT_TRUE(Await([&] { return IsWoken("a") && IsWoken("b"); }));
  EXPECT_EQ(Wakes(), 2);
}

TEST_F(ExtenderServerTest, APodTriedBeforeItsRoomWasKnownToBeFreeIsWoken) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  EXPECT_EQ(Filter("b")["NodeNames"], json::array());
  cluster_.Delete(kPodsPath, "d/a");
  EXPECT_TRUE(Await([&] { return IsWoken("b"); }));
}

TEST_F(ExtenderServerTest, APodIsWokenForItsRoomThoughOthersKeepEndingElsewhere) {
  json other = PodObject("other", 8);
  other["spec"]["nodeName"] = "n2";
  cluster_.Put(kPodsPath, other);
  PutCapacity("n2", 10);
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  ASSERT_EQ(Bind("a", "n1"), "");
  ASSERT_EQ(Filter("b")["NodeNames"], json::array());
  cluster_.Delete(kPodsPath, "d/a");
  // News of room on n2 more often than a change is left to kube-scheduler's own try.
  constexpr std::chrono::milliseconds kStays{200};
  auto changed = std::chrono::steady_clock::now();
  bool is_there = true;
  EXPECT_TRUE(Await([&] {
    if (std::chrono::steady_clock::now() - changed >= kStays) {
      changed += kStays;
      is_there = !is_there;
      if (is_there) {
        cluster_.Put(kPodsPath, other);
      } else {
        cluster_.Delete(kPodsPath, "d/other");
      }
    }
    return IsWoken("b");
  }));
}

TEST_F(ExtenderServerTest, APodThatWasWokenWithoutSuccessRestsBeforeItIsWokenAgain) {
  PutPod("a", 12);
  StartReady();
  Filter("a");
  PutCapacity("n2", 20);
  ASSERT_TRUE(Await([&] { return Wakes() == 1; }));
  const auto woken = std::chrono::steady_clock::now();
  PutCapacity("n2", 21);
  ASSERT_TRUE(Await([&] { return Wakes() == 2; }));
  EXPECT_GE(std::chrono::steady_clock::now() - woken, std::chrono::milliseconds(800));
}

TEST_F(ExtenderServerTest, APodThatWasRejectedBeforeTheStartIsWokenToo) {
  PutPod("new", 5);
  json pod = PodObject("a", 5);
  pod["status"]["conditions"] =
      json::parse(R"([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])");
  cluster_.Put(kPodsPath, pod);
  StartReady();
  EXPECT_TRUE(Await([&] { return IsWoken("a"); }));
  EXPECT_FALSE(IsWoken("new"));
}

TEST_F(ExtenderServerTest, APodThatFitsIsNotWoken) {
  PutPod("a", 5);
  PutPod("b", 12);
  StartReady();
  Filter("a");
  Filter("b");
  PutCapacity("n2", 20);
  ASSERT_TRUE(Await([&] { return IsWoken("b"); }));
  EXPECT_FALSE(IsWoken("a"));
}

}  // namespace
}  // namespace qrm::scheduler::extender_server_test
