// The extender as kube-scheduler sees it, in front of an API server that is as nasty as a real one.
#include "scheduler/extender/extender_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/is_ok.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;
using test::Await;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kPods[] = "/api/v1/pods";
constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kStatuses[] = "/apis/fake.qrm.io/v1/nodefakeresourcestatuses";
constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/leases";
constexpr char kNodeConfig[] =
    R"({machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1",
        topology-policy: single-numa-node, plugins: {cpu: {reserved-cpus: "0", static: true}}})";

json PodObject(const std::string& name, int request) {
  return {{"metadata",
           {{"namespace", "d"},
            {"name", name},
            {"uid", "uid-" + name},
            {"annotations", {{"fake.qrm.io/request", std::to_string(request)}}}}},
          {"spec", {{"containers", json::array({{{"name", "c"}}})}}}};
}

class ExtenderServerTest : public testing::Test {
 protected:
  ExtenderServerTest() {
    PutNode("n1", 10);
    PutNode("n2", 2);
  }

  void PutNode(const std::string& name, int capacity) {
    cluster_.Put(kNodes,
                 {{"metadata", {{"name", name}}}, {"status", {{"allocatable", {{"cpu", "8"}}}}}});
    PutCapacity(name, capacity);
  }
  void PutCapacity(const std::string& node, int capacity) {
    cluster_.Put(kStatuses, {{"metadata", {{"name", node}}},
                             {"spec", {{"nodeName", node}, {"fakeResource", capacity}}}});
  }
  void PutPod(const std::string& name, int request) {
    cluster_.Put(kPods, PodObject(name, request));
  }
  json PodIn(const std::string& name) const { return cluster_.Find(kPods, "d/" + name); }
  std::string NodeOf(const std::string& name) const {
    return PodIn(name).value(json::json_pointer("/spec/nodeName"), std::string());
  }

  void Start(std::vector<std::string> resources = {"fake"}) {
    ServeOptions options{.address = "127.0.0.1:0",
                         .monitor_address = "127.0.0.1:0",
                         .resources = std::move(resources),
                         .lease_namespace = "qrm"};
    options.bind_timeout = std::chrono::milliseconds(2000);
    auto server = ExtenderServer::Start(options, cluster_.access());
    ASSERT_TRUE(test::IsOk(server.status()));
    server_ = *std::move(server);
  }
  void StartReady(std::vector<std::string> resources = {"fake"}) {
    Start(std::move(resources));
    ASSERT_TRUE(Await([&] { return Get(server_->monitor_port(), "/readyz") == "ok\n"; }))
        << Get(server_->monitor_port(), "/readyz");
  }

  static std::string Exchange(int port, const std::string& head, const std::string& body) {
    boost::asio::ip::tcp::iostream stream("127.0.0.1", std::to_string(port));
    stream << head
           << " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " << body.size()
           << "\r\n\r\n"
           << body << std::flush;
    const std::string answer{std::istreambuf_iterator<char>(stream), {}};
    const auto end = answer.find("\r\n\r\n");
    return end == std::string::npos ? answer : answer.substr(end + 4);
  }
  static std::string Get(int port, const std::string& path) {
    return Exchange(port, "GET " + path, "");
  }
  json Ask(const std::string& verb, const json& body) const {
    return json::parse(Exchange(server_->port(), "POST /" + verb, body.dump()), nullptr, false);
  }
  json Filter(const std::string& pod) const {
    return Ask("filter", {{"Pod", PodIn(pod)}, {"Nodes", nullptr}, {"NodeNames", {"n1", "n2"}}});
  }
  std::string Bind(const std::string& pod, const std::string& node) const {
    return Ask("bind", {{"PodName", pod},
                        {"PodNamespace", "d"},
                        {"PodUID", "uid-" + pod},
                        {"Node", node}})["Error"];
  }
  std::ptrdiff_t Bindings() const {
    const std::vector<std::string> requests = cluster_.requests();
    return std::count_if(requests.begin(), requests.end(),
                         [](const std::string& request) { return request.ends_with("/binding"); });
  }
  bool IsWoken(const std::string& pod) const {
    return PodIn(pod).contains(json::json_pointer("/metadata/annotations/qrm.io~1room-seen"));
  }
  std::ptrdiff_t Wakes() const {
    const std::vector<std::string> requests = cluster_.requests();
    return std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
      return request.starts_with("PATCH /api/v1/namespaces/d/pods/");
    });
  }
  bool CacheEqualsARebuild() const {
    return json::parse(Get(server_->port(), "/dump?compare"))["equal"] == true;
  }

  test::FakeApiServer cluster_;
  std::unique_ptr<ExtenderServer> server_;
};

TEST_F(ExtenderServerTest, NodesWithoutRoomAreRefusedWithAReason) {
  PutPod("a", 5);
  StartReady();
  const json answer = Filter("a");
  EXPECT_EQ(answer["NodeNames"], json::array({"n1"}));
  EXPECT_EQ(answer["FailedNodes"], (json{{"n2", "not enough fake"}}));
  EXPECT_EQ(answer["Error"], "");
}

TEST_F(ExtenderServerTest, WhatHasNotBeenListedIsAnErrorAndNoRefusal) {
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

TEST_F(ExtenderServerTest, TheDecisionIsWrittenWithTheBinding) {
  json pod = PodObject("a", 0);
  pod["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "2"}, {"memory", "1Gi"}}}};
  cluster_.Put(kPods, pod);
  cluster_.Put(
      kNodes,
      {{"metadata", {{"name", "n1"}, {"annotations", {{"qrm.io/node-config", kNodeConfig}}}}}});
  StartReady({"numa"});
  EXPECT_EQ(Bind("a", "n1"), "");
  EXPECT_TRUE(PodIn("a")["metadata"]["annotations"].contains("qrm.io/placement")) << PodIn("a");
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

TEST_F(ExtenderServerTest, ABindingWhoseAnswerWasLostIsAskedForAgain) {
  PutPod("a", 8);
  StartReady();
  cluster_.LoseAnswers(2);
  EXPECT_EQ(Bind("a", "n1"), "");
  EXPECT_EQ(NodeOf("a"), "n1");
}

TEST_F(ExtenderServerTest, APodCountsWhileNobodyKnowsWhetherItIsBound) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  cluster_.HoldWrites();
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("cannot tell yet"));
  EXPECT_THAT(Bind("b", "n1"), HasSubstr("not enough fake"));
  cluster_.LetWritesGo();
  EXPECT_TRUE(Await([&] { return NodeOf("a") == "n1"; }));
}

TEST_F(ExtenderServerTest, APodThatSomebodyElseBoundLeavesItsRoom) {
  PutPod("a", 8);
  PutPod("b", 8);
  StartReady();
  cluster_.HoldWrites();
  std::thread other([&] {
    json pod = PodIn("a");
    pod["spec"]["nodeName"] = "n2";
    Await([&] { return Bindings() > 0; });
    cluster_.Put(kPods, pod);
    cluster_.LetWritesGo();
  });
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("already assigned to node"));
  other.join();
  EXPECT_EQ(Bind("b", "n1"), "");
}

TEST_F(ExtenderServerTest, AGrowthThatOnlyTheCustomResourceTellsMakesRoom) {
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

TEST_F(ExtenderServerTest, WhoDoesNotHoldTheLeaseBindsNothing) {
  PutPod("a", 1);
  cluster_.Put(kLeases,
               {{"metadata", {{"namespace", "qrm"}, {"name", "qrm-scheduler"}}},
                {"spec", {{"holderIdentity", "another"}, {"leaseDurationSeconds", 3600}}}});
  Start();
  EXPECT_TRUE(Await([&] { return Filter("a")["NodeNames"].size() == 2; })) << "it judges";
  EXPECT_THAT(Bind("a", "n1"), HasSubstr("another qrm-scheduler holds lease"));
  EXPECT_THAT(Get(server_->monitor_port(), "/readyz"), HasSubstr("holds lease"));
}

TEST_F(ExtenderServerTest, WhoStopsGivesTheLeaseUp) {
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
  cluster_.Delete(kPods, "d/p0");
  EXPECT_TRUE(CacheEqualsARebuild());
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

TEST_F(ExtenderServerTest, AChangeOfNodesAloneWakesNobody) {
  PutPod("a", 12);
  PutPod("b", 12);
  StartReady();
  Filter("a");
  PutNode("n3", 11);
  cluster_.Put(kNodes, {{"metadata", {{"name", "n1"}, {"annotations", {{"k", "v"}}}}}});
  const json about_n3 = {{"Pod", PodIn("b")}, {"Nodes", nullptr}, {"NodeNames", {"n3"}}};
  ASSERT_TRUE(Await([&] {  // nodes and capacities come on watches of their own
    return Ask("filter", about_n3)["FailedNodes"] == json{{"n3", "not enough fake"}};
  }));
  Filter("b");
  PutCapacity("n3", 12);  // both fit
  ASSERT_TRUE(Await([&] { return IsWoken("a") && IsWoken("b"); }));
  EXPECT_EQ(Wakes(), 2);
}

TEST_F(ExtenderServerTest, APodThatWasWokenInVainRestsBeforeItIsWokenAgain) {
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

TEST_F(ExtenderServerTest, APodThatWasRefusedBeforeTheStartIsWokenToo) {
  PutPod("new", 5);
  json pod = PodObject("a", 5);
  pod["status"]["conditions"] =
      json::parse(R"([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])");
  cluster_.Put(kPods, pod);
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
}  // namespace qrm::scheduler
