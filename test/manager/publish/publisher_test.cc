#include "manager/publish/publisher.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/mutex.h"
#include "manager/publish/node_topology.h"
#include "manager/publish/published_object.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::manager::publisher_test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using test::Await;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kPods[] = "/api/v1/pods";
constexpr char kDongle[] = "example.com/dongle";

/// A publisher of Node n1 that looks every 20 ms.
class PublisherTest : public testing::Test {
 protected:
  PublisherTest() {
    server_.Put(kNodes, {{"metadata", {{"name", "n1"}, {"uid", "u1"}}},
                         {"status", {{"capacity", {{"cpu", "8"}}}}}});
    server_.Put(kTopologiesPath, {{"metadata", {{"name", "other"}}}});
    server_.Delete(kTopologiesPath, "other");  // the kind exists
    Offer(4);
  }

  void Offer(double dongles) {
    AllocatableByResource offered;
    offered["cpu"] = {.allocatable_by_node = {{0, 4}, {1, 4}},
                      .capacity_by_node = {{0, 4}, {1, 4}}};
    if (dongles > 0) {
      offered[kDongle] = {.is_node_resource = true,
                          .is_scalar_resource = true,
                          .allocatable = dongles,
                          .capacity = dongles};
    }
    const MutexLock lock(mutex_);
    offered_ = std::make_shared<const AllocatableByResource>(std::move(offered));
  }

  void Start(std::vector<std::string> what = {kPublishTopology, kPublishResources, kPublishEvents},
             milliseconds grace = std::chrono::minutes(5),
             milliseconds heartbeat = std::chrono::minutes(5)) {
    publisher_ = std::make_unique<Publisher>(
        Publisher::Parts{
            .snapshots = snapshots_,
            .machine = machine_,
            .allocatable =
                [this] {
                  const MutexLock lock(mutex_);
                  return offered_;
                },
            .types = [] { return std::make_shared<const OfferedTypes>(); },
            .class_problems = [](const ContainerKey&) { return std::vector<std::string>(); },
            .config = [this](const checkpoint::NodeState&,
                             const CpuSet& offline) { return config_ + ToString(offline); },
            .restored = [] { return true; },
            .permissions = [] { return placement::Permissions(); },
            .drivers =
                [this] {
                  const MutexLock lock(mutex_);
                  return drivers_;
                },
            .policy = TopologyPolicy::kSingleNumaNode,
            .access = [this] { return server_.access(); }},
        PublishOptions{.what = std::move(what),
                       .node_name = "n1",
                       .interval = milliseconds(20),
                       .grace = grace,
                       .heartbeat = heartbeat});
    publisher_->Start();
  }

  json Node() const { return server_.Find(kNodes, "n1"); }
  json Topology() const { return server_.Find(kTopologiesPath, "n1"); }
  json Capacity() const {
    const json node = Node();
    const json::json_pointer path("/status/capacity/example.com~1dongle");
    return node.contains(path) ? node[path] : json();
  }
  std::string Config() const {
    const json::json_pointer path("/metadata/annotations/qrm.io~1node-config");
    const json node = Node();
    return node.contains(path) ? node[path].get<std::string>() : std::string();
  }
  std::string PublishedAt() const {
    const json::json_pointer path("/metadata/annotations/qrm.io~1published-at");
    const json node = Node();
    return node.contains(path) ? node[path].get<std::string>() : std::string();
  }
  std::string CpusAvailable(int node) const {
    const json::json_pointer path("/zones/" + std::to_string(node) + "/resources/0/available");
    const json topology = Topology();
    return topology.contains(path) ? topology[path].get<std::string>() : std::string();
  }
  bool AwaitAll() const {
    return Await([&] { return Capacity() == "4" && CpusAvailable(0) == "4"; });
  }
  std::ptrdiff_t Writes() const {
    const std::vector<std::string> requests = server_.requests();
    return std::count_if(requests.begin(), requests.end(),
                         [](const std::string& request) { return !request.starts_with("GET "); });
  }
  /// Node and topology are watched, so that the next request is a write.
  bool AwaitWatches() const {
    return Await([&] {
      const std::vector<std::string> requests = server_.requests();
      return std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
               return request.find("watch=1") != std::string::npos;
             }) == 2;
    });
  }
  /// Returns when so many looks have passed.
  void AwaitLooks() const {
    constexpr int kLooks = 10;
    const auto end = std::chrono::steady_clock::now() + kLooks * milliseconds(20);
    Await([&] { return std::chrono::steady_clock::now() > end; });
  }

  Machine machine_ = test::SampleMachine();
  std::string config_ = "offline: ";
  std::string drivers_ QRM_GUARDED_BY(mutex_) = R"({"fast":"ready"})";
  test::FakeSnapshots snapshots_;
  test::FakeApiServer server_;
  Mutex mutex_;
  std::shared_ptr<const AllocatableByResource> offered_ QRM_GUARDED_BY(mutex_);
  std::unique_ptr<Publisher> publisher_;
};

TEST_F(PublisherTest, GivesSignsOfLifeWithWhatSchedulersJudgeBy) {
  Start({kPublishNodeConfig}, std::chrono::minutes(5), milliseconds(50));
  ASSERT_TRUE(Await([&] { return !PublishedAt().empty(); }));
  const std::string first = PublishedAt();
  EXPECT_TRUE(Await([&] { return PublishedAt() != first; }));
}

TEST_F(PublisherTest, GivesNoSignsOfLifeWhereNobodyReadsThem) {
  Start({kPublishTopology, kPublishResources}, std::chrono::minutes(5), milliseconds(50));
  ASSERT_TRUE(AwaitAll());
  EXPECT_EQ(PublishedAt(), "");
}

TEST_F(PublisherTest, TheNodeIsPublishedInOneWriteOfEachObject) {
  Start();
  ASSERT_TRUE(AwaitAll());
  AwaitLooks();
  EXPECT_EQ(Writes(), 2);
  EXPECT_EQ(Topology()["metadata"]["ownerReferences"],
            json::parse(R"([{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}])"));
  EXPECT_THAT(publisher_->GetStatus().problem, IsEmpty());
}

TEST_F(PublisherTest, AllocationsArePublishedInTheNextWrite) {
  Start();
  ASSERT_TRUE(AwaitAll());
  snapshots_.Apply(test::Admit(test::SamplePod("a"), "c", {{"cpu", test::OwnCpus("0-2")}}));
  EXPECT_TRUE(Await([&] { return CpusAvailable(0) == "1"; }));
  EXPECT_EQ(Writes(), 3);
}

TEST_F(PublisherTest, WhatOthersUndoIsPutBack) {
  Start();
  ASSERT_TRUE(AwaitAll());
  json node = Node();
  node["status"]["capacity"][kDongle] = "0";
  server_.Put(kNodes, node);
  server_.Delete(kTopologiesPath, "n1");
  EXPECT_TRUE(AwaitAll());
}

TEST_F(PublisherTest, AResourceWhosePluginIsGoneIsWithdrawnAfterTheGracePeriod) {
  Start({kPublishResources}, milliseconds(300));
  ASSERT_TRUE(Await([&] { return Capacity() == "4"; }));
  const auto gone = std::chrono::steady_clock::now();
  Offer(0);
  EXPECT_TRUE(Await([&] { return Capacity().is_null(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - gone, milliseconds(280));
}

TEST_F(PublisherTest, WhatOthersPlaceByFollowsTheCpusThatAreThere) {
  const test::TempDir root = test::TempDir::InMemory();
  test::WriteSysfsMachine(root.path(), {.cpus = 4});
  machine_ = *Discover({.kind = MachineSource::Kind::kFsRoot, .argument = root.path()});
  Start({kPublishNodeConfig});
  ASSERT_TRUE(Await([&] { return Config() == "offline: "; }));
  test::SetOnline(root.path(), CpuSet{0, 1, 2});
  ASSERT_TRUE(Await([&] { return Config() == "offline: 3"; }));
  test::SetOnline(root.path(), CpuSet{0, 1, 2, 3});
  ASSERT_TRUE(Await([&] { return Config() == "offline: "; }));
  AwaitLooks();
  EXPECT_EQ(Writes(), 3);
}

TEST_F(PublisherTest, WhatOthersPlaceByIsWithdrawnWhenPublishingIsDisabled) {
  Start({kPublishNodeConfig});
  ASSERT_TRUE(Await([&] { return !Config().empty(); }));
  publisher_.reset();
  Start({kPublishClasses});
  EXPECT_TRUE(Await([&] { return Config().empty(); }));
}

TEST_F(PublisherTest, AConfigurationThatIsTooLongForANodeIsAProblem) {
  config_ = std::string(70'000, 'x');
  Start({kPublishNodeConfig});
  EXPECT_TRUE(Await([&] {
    return publisher_->GetStatus().problem ==
           "cannot publish this node's configuration: it has 70000 bytes, at most 65536 are "
           "allowed; shorten the sections of plugins";
  }));
  EXPECT_THAT(Config(), IsEmpty());
}

TEST_F(PublisherTest, ReadinessOfDriversIsOnTheNodeAndFollowsThem) {
  const auto shows = [&](const std::string& text) {
    return Await([&] {
      const json node = Node();
      const json::json_pointer path("/metadata/annotations/qrm.io~1compute-drivers");
      return node.contains(path) && node[path] == text;
    });
  };
  Start({kPublishDrivers});
  EXPECT_TRUE(shows(R"({"fast":"ready"})"));
  {
    const MutexLock lock(mutex_);
    drivers_ = R"({"fast":"not running"})";
  }
  EXPECT_TRUE(shows(R"({"fast":"not running"})"));
}

TEST_F(PublisherTest, ARestartWithdrawsNothingBeforePluginsAreBack) {
  Start();
  ASSERT_TRUE(AwaitAll());
  publisher_.reset();
  Offer(0);
  const auto writes = Writes();
  Start();
  ASSERT_TRUE(Await([&] { return publisher_->GetStatus().enabled; }));
  AwaitLooks();
  EXPECT_EQ(Capacity(), "4");
  EXPECT_EQ(Writes(), writes);
}

TEST_F(PublisherTest, TheClassesOfAPodAreOnThePodAndFollowItsRecord) {
  const auto has = [&](const char* pod, const json& text) {
    return Await([&] {
      const json object = server_.Find(kPods, std::string("default/") + pod);
      return object.value(json::json_pointer("/metadata/annotations/qrm.io~1class-status"),
                          json()) == text;
    });
  };
  const auto give = [&](const char* pod, const StringMap& classes, const StringMap& annotations) {
    checkpoint::Change change = test::Admit(test::SamplePod(pod), "c", {});
    change.put_containers.front().record.classes = classes;
    change.put_containers.front().pod.annotations = annotations;
    snapshots_.Apply(change);
  };
  for (const char* pod : {"a", "b", "mirror"}) {
    server_.Put(kPods, {{"metadata",
                         {{"namespace", "default"},
                          {"name", pod},
                          {"annotations", {{"qrm.io/class-status", "old"}}}}}});
  }
  give("a", {{"oom", "first"}}, {});
  give("b", {}, {{"oom.resources.alpha.kubernetes.io/default", ""}});
  give("gone", {{"oom", "first"}}, {});
  give("mirror", {{"oom", "first"}}, {{"kubernetes.io/config.source", "file"}});
  Start({kPublishPodClasses});
  EXPECT_TRUE(has("a", R"({"containers":{"c":{"oom":"first"}}})"));
  EXPECT_TRUE(has("b", nullptr));
  give("a", {{"oom", "last"}}, {});
  EXPECT_TRUE(has("a", R"({"containers":{"c":{"oom":"last"}}})"));
  EXPECT_TRUE(has("mirror", "old"));
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().writes == 3; }));
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().problem.empty(); }));
  EXPECT_EQ(publisher_->GetStatus().events, 0);
}

TEST_F(PublisherTest, ARejectedPodGetsAnEvent) {
  Start({kPublishEvents});
  ASSERT_TRUE(Await([&] { return publisher_->GetStatus().enabled; }));
  publisher_->Warn({.pod_namespace = "ns", .pod_name = "p", .pod_uid = "u", .message = "no room"});
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().events == 1; }));
  const std::vector<std::string> requests = server_.requests();
  EXPECT_THAT(requests, testing::Contains(HasSubstr("PATCH /api/v1/namespaces/ns/events/p.")));
}

TEST_F(PublisherTest, AnEventThatTheServerDidNotAcceptIsSentWhenItIsBack) {
  server_.Refuse(1000, 503);
  Start({kPublishEvents});
  publisher_->Warn(
      {.pod_namespace = "ns", .pod_name = "first", .pod_uid = "u", .message = "no room"});
  publisher_->Warn(
      {.pod_namespace = "ns", .pod_name = "second", .pod_uid = "v", .message = "no room"});
  ASSERT_TRUE(Await([&] { return !publisher_->GetStatus().problem.empty(); }));
  server_.Refuse(0, 503);
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().events == 2; }));
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().problem.empty(); }));
  const std::vector<std::string> requests = server_.requests();
  EXPECT_THAT(requests, testing::Contains(HasSubstr("/events/first.")));
  EXPECT_THAT(requests.back(), HasSubstr("/events/second."));
}

TEST_F(PublisherTest, AnEventInANamespaceThatIsGoneHoldsUpNoOther) {
  server_.Refuse(1, 404);
  Start({kPublishEvents});
  for (const char* pod : {"gone", "next"}) {
    publisher_->Warn(
        {.pod_namespace = "ns", .pod_name = pod, .pod_uid = pod, .message = "no room"});
  }
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().events == 1; }));
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().problem.empty(); }));
}

TEST_F(PublisherTest, APodEndsWithTheReasonOnce) {
  server_.Put(kPods, {{"metadata", {{"namespace", "ns"}, {"name", "web"}, {"uid", "u2"}}},
                      {"status", {{"phase", "Pending"}}}});
  Start({kPublishPodFailures});
  for (int i = 0; i < 2; ++i) {
    publisher_->EndPod({.pod_namespace = "ns",
                        .pod_name = "web",
                        .pod_uid = "u2",
                        .message = "no room",
                        .reason = "PlacementRefused"});
  }
  EXPECT_TRUE(Await([&] { return server_.Find(kPods, "ns/web")["status"]["phase"] == "Failed"; }));
  const json status = server_.Find(kPods, "ns/web")["status"];
  EXPECT_EQ(status["reason"], "PlacementRefused");
  EXPECT_EQ(status["message"], "no room");
  AwaitLooks();
  EXPECT_EQ(Writes(), 1);
}

TEST_F(PublisherTest, WithoutTheWordNoPodEnds) {
  Start({kPublishEvents});
  publisher_->EndPod({.pod_namespace = "ns", .pod_name = "web", .pod_uid = "u2"});
  AwaitLooks();
  EXPECT_EQ(Writes(), 0);
}

TEST_F(PublisherTest, AWriterThatWaitsAfterFailuresWritesOnceTheServerIsBack) {
  boost::asio::io_context io;
  cluster::ApiClient client(io, server_.access(), {});
  PublishedObject node(io, "Node", milliseconds(0), [] {});
  const auto writes = [&] {
    node.Settle(client, cluster::ApiRequest{.method = "GET", .path = "/api/v1/nodes/n1"});
    io.restart();
    io.poll();
    return node.writes();
  };
  server_.Refuse(1, 503);
  ASSERT_TRUE(Await([&] { return writes() == 0 && node.failures() == 1; }));
  for (int look = 0; look < 3; ++look) {
    EXPECT_EQ(writes(), 0);
  }
  EXPECT_THAT(server_.requests(), testing::SizeIs(1));
  node.RetryNow();
  EXPECT_TRUE(Await([&] { return writes() > 0; }));
}

TEST_F(PublisherTest, FailuresAreCountedAndTriedAgain) {
  server_.Refuse(1000, 500);
  Start();
  EXPECT_TRUE(Await([&] { return !publisher_->GetStatus().problem.empty(); }));
  server_.Refuse(0, 500);
  EXPECT_TRUE(AwaitAll());
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().problem.empty(); }));
}

TEST_F(PublisherTest, AWriteThatIsRejectedIsAProblemUntilItIsTaken) {
  Start({kPublishTopology});
  ASSERT_TRUE(Await([&] { return CpusAvailable(0) == "4"; }) && AwaitWatches());
  server_.Refuse(1, 422);
  snapshots_.Apply(test::Admit(test::SamplePod("a"), "c", {{"cpu", test::OwnCpus("0-2")}}));
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().failures == 1; }));
  EXPECT_TRUE(Await([&] { return CpusAvailable(0) == "1"; }));
  EXPECT_TRUE(Await([&] { return publisher_->GetStatus().problem.empty(); }));
}

TEST_F(PublisherTest, ANodeThatIsNotThereIsNamed) {
  server_.Delete(kNodes, "n1");
  Start();
  EXPECT_TRUE(Await(
      [&] { return publisher_->GetStatus().problem.find("no Node n1") != std::string::npos; }));
}

TEST_F(PublisherTest, WithNothingToPublishNoServerIsAsked) {
  Start({});
  AwaitLooks();
  EXPECT_THAT(server_.requests(), IsEmpty());
  EXPECT_FALSE(publisher_->GetStatus().enabled);
}

TEST(PublishOptionsTest, AWordThatIsNoneIsRejectedWithAllThatAre) {
  const Status checked = CheckPublish({.what = {"topology", "weather"}});
  EXPECT_EQ(checked.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(checked), HasSubstr("'weather'"));
  EXPECT_THAT(MessageOf(checked), HasSubstr("topology, extended-resources, classes"));
}

}  // namespace
}  // namespace qrm::manager::publisher_test
