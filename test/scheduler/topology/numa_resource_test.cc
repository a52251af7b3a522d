#include "scheduler/topology/numa_resource.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/placement_note.h"

namespace qrm::scheduler {
namespace {

using testing::HasSubstr;

// Two NUMA nodes of four CPUs, the first of which is reserved.
constexpr char kConfig[] = R"(
machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1"
topology-policy: single-numa-node
plugins: {cpu: {reserved-cpus: "0", static: true}, memory: {static: true}}
)";

Pod Guaranteed(const std::string& name, double cpus, double gib = 1) {
  return {.uid = name,
          .pod_namespace = "ns",
          .name = name,
          .qos_class = "Guaranteed",
          .containers = {{.name = "c", .requests = {{"cpu", cpus}, {"memory", gib * (1 << 30)}}}}};
}

class NumaResourceTest : public testing::Test {
 protected:
  NumaResourceTest() {
    handles_.Register(kNuma, MakeNumaHandle);
    cache_ = *ClusterCache::Make(handles_);
    cache_->ReplaceNodes({{.name = "n1", .annotations = {{kNodeConfig, kConfig}}}}, "1");
    cache_->ReplacePods({.version = "1"});
  }

  std::string Refusal(const Pod& pod, const std::string& node = "n1") {
    return RefusalOf(*cache_->Publish(), handles_, pod, node);
  }
  /// Counts `pod` on n1 with what is decided for it.
  Pod Bind(Pod pod) {
    cache_->SetPod(pod);
    const auto decision = cache_->Assume(pod.uid, "n1");
    EXPECT_TRUE(decision.ok()) << decision.status();
    for (const auto& [key, value] : *decision) {
      pod.annotations[key] = value;
    }
    pod.node = "n1";
    cache_->SetPod(pod);
    return pod;
  }
  std::string OwnCpus(const std::string& uid) const {
    const nlohmann::json dump = nlohmann::json::parse(cache_->Dump());
    return dump.at("nodes").at("n1").at("resources").at(kNuma).at("exclusive").at(uid).at("c");
  }

  HandleRegistry handles_;
  std::unique_ptr<ClusterCache> cache_;
};

TEST_F(NumaResourceTest, RefusesWhatFitsTheNodeButNoNumaNode) {
  EXPECT_EQ(Refusal(Guaranteed("a", 5)),
            "no NUMA placement fits under topology-policy "
            "single-numa-node");
  EXPECT_EQ(Refusal(Guaranteed("a", 4)), "");
}

TEST_F(NumaResourceTest, CountsWhatItDecided) {
  Bind(Guaranteed("a", 4));
  EXPECT_EQ(OwnCpus("a"), "4-7");
  EXPECT_EQ(Refusal(Guaranteed("b", 3)), "");
  EXPECT_EQ(Refusal(Guaranteed("b", 4)), "the node has too little cpu left where it is needed");
}

TEST_F(NumaResourceTest, KeepsAPlaceThatItWouldNotChooseAgain) {
  const Pod first = Bind(Guaranteed("a", 3));
  Bind(Guaranteed("b", 2));
  cache_->DeletePod(first.uid, "");
  const std::string before = OwnCpus("b");
  EXPECT_EQ(before, "4-5");
  cache_->SetNode(
      {.name = "n1", .annotations = {{kNodeConfig, std::string(kConfig) + "# written again"}}});
  EXPECT_EQ(OwnCpus("b"), before);
}

TEST_F(NumaResourceTest, PlacesPodsThatOthersBoundAsTheNodeWill) {
  Pod pod = Guaranteed("a", 4);
  pod.node = "n1";
  cache_->SetPod(pod);
  EXPECT_EQ(OwnCpus("a"), "4-7");
}

TEST_F(NumaResourceTest, ADecisionThatNobodyCanReadCountsAsNone) {
  Pod pod = Guaranteed("a", 4);
  pod.node = "n1";
  pod.annotations[kPlacement] = "{\"containers\": 7}";
  cache_->SetPod(pod);
  EXPECT_EQ(OwnCpus("a"), "4-7");
}

TEST_F(NumaResourceTest, PrefersNumaNodesThatAreUsedAlready) {
  const int empty = ScoreOf(*cache_->Publish(), Guaranteed("b", 2), "n1");
  Bind(Guaranteed("a", 1));
  EXPECT_GT(ScoreOf(*cache_->Publish(), Guaranteed("b", 2), "n1"), empty);
}

TEST_F(NumaResourceTest, RefusesPodsWithARoleWhereNothingIsToldOfTheNode) {
  cache_->SetNode({.name = "n2"});
  Pod pod = Guaranteed("a", 1);
  EXPECT_EQ(Refusal(pod, "n2"), "");
  pod.labels["katalyst.kubewharf.io/pod_role"] = "db";
  EXPECT_EQ(Refusal(pod, "n2"), "the node has not told what it has of numa");
}

TEST_F(NumaResourceTest, AConfigurationThatCannotBeReadTellsNothing) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeConfig, "machine: live"}}});
  EXPECT_EQ(cache_->Publish()->Find("n1")->resources.size(), 0U);
}

TEST(ReadNodeModelTest, TakesNoFileOfTheNodes) {
  const Status read = ReadNodeModel("machine: \"xml:/etc/passwd\"", "n1").status();
  EXPECT_THAT(MessageOf(read), HasSubstr("which only the node can read"));
}

TEST(ReadNodeModelTest, NamesKeysThatItDoesNotKnow) {
  EXPECT_THAT(MessageOf(ReadNodeModel("machin: x", "annotation a of node n1").status()),
              HasSubstr("annotation a of node n1:1: machin"));
}

}  // namespace
}  // namespace qrm::scheduler
