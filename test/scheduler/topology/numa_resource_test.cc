#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/rejected.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/filter.h"
#include "scheduler/topology/placement_note.h"
#include "scheduler/topology/resource_types.h"

namespace qrm::scheduler::numa_resource_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

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
  /// Counts `pod` on n1 with its decision.
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

TEST_F(NumaResourceTest, RejectsWhatFitsTheNodeButNoNumaNode) {
  EXPECT_EQ(Refusal(Guaranteed("a", 5)),
            "no NUMA placement fits under topology-policy "
            "single-numa-node");
  EXPECT_EQ(Refusal(Guaranteed("a", 4)), "");
}

TEST_F(NumaResourceTest, CountsDecisions) {
  Bind(Guaranteed("a", 4));
  EXPECT_EQ(OwnCpus("a"), "4-7");
  EXPECT_EQ(Refusal(Guaranteed("b", 3)), "");
  EXPECT_EQ(Refusal(Guaranteed("b", 4)), "the node has too little cpu left where it is needed");
}

TEST_F(NumaResourceTest, CpusOfAComputeDriverCountWhateverThePodsClassIs) {
  Pod driven = Guaranteed("a", 3);
  driven.qos_class = "Burstable";
  driven.annotations["cci.qrm.io/driver"] = "fast";
  Bind(driven);
  EXPECT_EQ(Refusal(Guaranteed("b", 4)), "");
  Bind(Guaranteed("b", 3));
  EXPECT_EQ(Refusal(Guaranteed("c", 2)), "the node has too little cpu left where it is needed");
  cache_->DeletePod("a", "");
  EXPECT_EQ(Refusal(Guaranteed("c", 2)), "");
}

TEST_F(NumaResourceTest, ADriverMayGiveTheCpusOfInitContainersThatHaveEnded) {
  Bind(Guaranteed("a", 4));
  Pod driven = Guaranteed("b", 3);
  driven.containers.insert(driven.containers.begin(), driven.containers.front());
  driven.containers.front().name = "init";
  driven.containers.front().kind = PodContainer::Kind::kInit;
  driven.annotations["cci.qrm.io/driver"] = "fast";
  EXPECT_EQ(Refusal(driven), "");
}

TEST_F(NumaResourceTest, APodOfADriverNeedsTheCpusOnOneNode) {
  Pod driven = Guaranteed("a", 5);
  driven.qos_class = "Burstable";
  EXPECT_EQ(Refusal(driven), "") << "it shares CPUs";
  driven.annotations["driver.cci.qrm.io/container.c"] = "fast";
  EXPECT_NE(Refusal(driven), "");
  driven.annotations["driver.cci.qrm.io/container.c"] = "";
  EXPECT_EQ(Refusal(driven), "") << "it is excepted";
}

// Kubelet decides on the node which device a pod gets.
TEST_F(NumaResourceTest, APodIsNotKeptOffForADeviceThatItHasNotYet) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeConfig, R"(
machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1"
plugins:
  cpu:
    rules: [{select: {qos: Guaranteed}, pool: llm}]
    pools:
      llm: {size: {max: 8}, instances: {by: pod},
            place: {numa: one, near: ["nvidia.com/*"], require: [numa, near]}}
)"}}});
  EXPECT_EQ(Refusal(Guaranteed("a", 4)), "");
  EXPECT_NE(Refusal(Guaranteed("b", 5)), "");
}

TEST_F(NumaResourceTest, KeepsAnAllocationThatItWouldNotChooseAgain) {
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

TEST_F(NumaResourceTest, AnUnreadableDecisionCountsAsNone) {
  Pod pod = Guaranteed("a", 4);
  pod.node = "n1";
  pod.annotations[kPlacement] = "{\"containers\": 7}";
  cache_->SetPod(pod);
  EXPECT_EQ(OwnCpus("a"), "4-7");
}

TEST_F(NumaResourceTest, AForgedDecisionCountsNoMoreThanItsPodRequests) {
  const auto counted = [this] {
    return nlohmann::json::parse(cache_->Dump()).at("nodes").at("n1").at("resources").at(kNuma);
  };
  const nlohmann::json nothing = counted();
  for (const char* note :
       {R"({"containers": {"c": {"cpu": "1-7"}}})", R"({"containers": {"c": {"cpu": "all"}}})",
        R"({"containers": {"c": {"memory": {"nodes": "0", "bytes": {"0": 8000000000}}}}})",
        R"({"containers": {"c": {"memory": {"nodes": "0", "bytes": {"0": -1}}}}})",
        R"({"containers": {}, "inits": {"c": {"memory": 8000000000}}})",
        R"({"containers": {}, "inits": {"other": {"memory": 1}}})"}) {
    Pod pod = Guaranteed("a", 0.1);
    pod.qos_class = "Burstable";
    pod.node = "n1";
    pod.annotations[kPlacement] = note;
    const uint64_t rejected = RejectedSoFar(Rejected::kPlacement);
    cache_->SetPod(pod);
    EXPECT_EQ(counted(), nothing) << note;
    EXPECT_EQ(RejectedSoFar(Rejected::kPlacement), rejected + 1) << note;
  }
}

TEST_F(NumaResourceTest, APodWithoutExclusiveResourcesChangesNothing) {
  Bind(Guaranteed("a", 3));
  const std::string before = cache_->Dump();
  Pod shared = Guaranteed("b", 3);
  shared.qos_class = "Burstable";
  shared.node = "n1";
  cache_->SetPod(shared);
  cache_->DeletePod("b", "");
  EXPECT_EQ(cache_->Dump(), before);
}

TEST_F(NumaResourceTest, AnswersTheSameQuestionAgainWhenAPodComesOrGoes) {
  EXPECT_EQ(Refusal(Guaranteed("b", 4)), "");
  Bind(Guaranteed("a", 4));
  EXPECT_EQ(Refusal(Guaranteed("b", 4)), "the node has too little cpu left where it is needed");
  cache_->DeletePod("a", "");
  EXPECT_EQ(Refusal(Guaranteed("b", 4)), "");
}

TEST_F(NumaResourceTest, DistinguishesPodsByAllThatAllocationsDependOn) {
  Bind(Guaranteed("a", 4));
  EXPECT_NE(Refusal(Guaranteed("b", 4)), "");
  EXPECT_EQ(Refusal(Guaranteed("b", 2)), "");
  Pod pod = Guaranteed("b", 4);
  pod.qos_class = "Burstable";
  EXPECT_EQ(Refusal(pod), "");
  pod = Guaranteed("b", 4);
  pod.pod_namespace = "kube-system";
  EXPECT_EQ(Refusal(pod), "");
  pod = Guaranteed("b", 4);
  pod.annotations["katalyst.kubewharf.io/qos_level"] = "shared_cores";
  EXPECT_EQ(Refusal(pod), "");
}

TEST_F(NumaResourceTest, NodesThatHoldTheSameAnswerTheSameAndOthersDoNot) {
  for (const char* const node : {"n2", "n3"}) {
    cache_->SetNode({.name = node, .annotations = {{kNodeConfig, kConfig}}});
  }
  Bind(Guaranteed("a", 4));
  Pod other = Guaranteed("c", 4);
  other.node = "n2";
  cache_->SetPod(other);
  EXPECT_EQ(Refusal(Guaranteed("b", 4), "n1"), Refusal(Guaranteed("b", 4), "n2"));
  EXPECT_EQ(Refusal(Guaranteed("b", 4), "n3"), "");
}

// Pool web follows its containers, up to the whole second NUMA node and two CPUs of the first.
constexpr char kElastic[] = R"(
machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1"
topology-policy: single-numa-node
plugins:
  cpu:
    reserved-cpus: "0"
    rules: [{select: {qos: Burstable}, pool: web}, {select: {%}, grant: own}]
    grants: {own: {numa: one}}
    pools: {web: {size: {max: 6}}}
)";

/// The pods that `selector` names have exclusive CPUs.
std::string Elastic(const std::string& selector) {
  std::string text = kElastic;
  return text.replace(text.find('%'), 1, selector);
}

TEST_F(NumaResourceTest, CountsPodsThatOnlyMakeAPoolGrow) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeConfig, Elastic("qos: Guaranteed")}}});
  EXPECT_EQ(Refusal(Guaranteed("a", 3)), "");
  Pod web = Guaranteed("web", 6);
  web.qos_class = "Burstable";
  Bind(web);
  EXPECT_EQ(Refusal(Guaranteed("a", 3)), "the node has too little cpu left where it is needed");
  cache_->DeletePod("web", "");
  EXPECT_EQ(Refusal(Guaranteed("a", 3)), "");
}

TEST_F(NumaResourceTest, DistinguishesPodsByTheirNamesWhereRulesDo) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeConfig, Elastic("pod: own-*")}}});
  EXPECT_EQ(Refusal(Guaranteed("other", 5)), "") << "it uses the default pool";
  EXPECT_NE(Refusal(Guaranteed("own-b", 5)), "");
}

TEST_F(NumaResourceTest, DistinguishesPodsByTheirRuntimeClass) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeConfig, Elastic("runtime-class: vm")}}});
  EXPECT_EQ(Refusal(Guaranteed("a", 5)), "") << "it uses the default pool";
  Pod vm = Guaranteed("a", 5);
  vm.runtime_class = "vm";
  EXPECT_NE(Refusal(vm), "");
}

TEST_F(NumaResourceTest, ReadsTheAnnotationsThatANodesConfigurationNames) {
  Pod tagged = Guaranteed("a", 5);
  tagged.annotations = {{"test/own", "true"}};
  cache_->SetPod(tagged);
  EXPECT_THAT(cache_->FindPods("a").front()->annotations, IsEmpty());
  EXPECT_TRUE(cache_->TakeNewAnnotationKeys());
  EXPECT_FALSE(cache_->TakeNewAnnotationKeys());
  cache_->SetNode(
      {.name = "n1", .annotations = {{kNodeConfig, Elastic("annotation: {test/own: \"true\"}")}}});
  EXPECT_TRUE(cache_->TakeNewAnnotationKeys()) << "pods have to be listed again";
  cache_->SetPod(tagged);
  EXPECT_NE(Refusal(*cache_->FindPods("a").front()), "");
}

TEST_F(NumaResourceTest, PrefersNumaNodesThatAreUsedAlready) {
  const int empty = ScoreOf(*cache_->Publish(), Guaranteed("b", 2), "n1");
  Bind(Guaranteed("a", 1));
  EXPECT_GT(ScoreOf(*cache_->Publish(), Guaranteed("b", 2), "n1"), empty);
}

TEST_F(NumaResourceTest, RejectsPodsWithARoleOnANodeThatPublishesNothing) {
  cache_->SetNode({.name = "n2"});
  Pod pod = Guaranteed("a", 1);
  EXPECT_EQ(Refusal(pod, "n2"), "");
  pod.labels["katalyst.kubewharf.io/pod_role"] = "db";
  EXPECT_EQ(Refusal(pod, "n2"), "the node has not reported its numa");
}

TEST_F(NumaResourceTest, AConfigurationThatCannotBeReadReportsNothing) {
  cache_->SetNode({.name = "n1", .annotations = {{kNodeConfig, "machine: live"}}});
  EXPECT_EQ(cache_->Publish()->Find("n1")->resources.size(), 0U);
}

TEST_F(NumaResourceTest, NonsenseOfOneNodeCostsThatNodeOnly) {
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'k'; ++name) {
    laughs += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", name,
                          static_cast<char>(name - 1));
  }
  for (const std::string& nonsense :
       {std::string("machine: &a [*a]"), laughs, std::string(200'000, '['),
        std::string("machine: \"synthetic:package:100000 core:1 pu:1\"")}) {
    cache_->SetNode({.name = "n2", .annotations = {{kNodeConfig, nonsense}}});
    EXPECT_EQ(cache_->Publish()->Find("n2")->resources.size(), 0U);
    EXPECT_GT(cache_->Publish()->Find("n1")->resources.size(), 0U);
  }
}

TEST(ReadNodeModelTest, TakesNoFileOfTheNodes) {
  const Status read = placement::ReadNodeModel("machine: \"xml:/etc/passwd\"", "n1").status();
  EXPECT_THAT(MessageOf(read), HasSubstr("which only the node can read"));
}

TEST_F(NumaResourceTest, KeepsPodsOffCpusThatAreOffline) {
  cache_->SetNode(
      {.name = "n1", .annotations = {{kNodeConfig, std::string("offline-cpus: \"4\"") + kConfig}}});
  EXPECT_EQ(Refusal(Guaranteed("a", 4)),
            "no NUMA placement fits under topology-policy "
            "single-numa-node");
  EXPECT_EQ(Refusal(Guaranteed("a", 3)), "");
}

TEST(ReadNodeModelTest, KnowsRolesByTheKeysOfTheNode) {
  const auto model = placement::ReadNodeModel(
      R"({machine: "synthetic:package:1 [numa] core:4 pu:1", pod-role-label: example.com/role,
          plugins: {cpu: {roles: {db: {}}}}})",
      "n1");
  ASSERT_TRUE(model.ok()) << model.status();
  Pod pod = Guaranteed("a", 1);
  EXPECT_FALSE(placement::MayHold(**model, DemandsOf(**model, pod)));
  pod.labels["example.com/role"] = "db";
  EXPECT_TRUE(placement::MayHold(**model, DemandsOf(**model, pod)));
}

TEST(ReadNodeModelTest, AsksOnlyPluginsThatRunInsideQrmd) {
  const auto model = placement::ReadNodeModel(
      R"({machine: "synthetic:package:1 [numa] core:4 pu:1", builtin-plugins: [memory],
          plugins: {cpu: {static: true, reserved-cpus: "0"}, memory: {}}})",
      "n1");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(placement::PlacePod(**model, DemandsOf(**model, Guaranteed("a", 40)),
                                  placement::NothingHeld(**model))
                  .ok());
}

TEST(ReadNodeModelTest, TakesTheSizesOfPoolsThatWereResized) {
  const std::string keys =
      R"(machine: "synthetic:package:1 [numa] core:4 pu:1", plugins: {cpu: {pools: {p: {cpus: "1"}}}})";
  const auto model = placement::ReadNodeModel("{" + keys + ", pool-cpus: {p: 1-2}}", "n1");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(placement::NothingHeld(**model).cpu.pools.at("p"), (CpuSet{1, 2}));
  EXPECT_THAT(
      MessageOf(placement::ReadNodeModel("{" + keys + ", pool-cpus: {q: 1-2}}", "n1").status()),
      HasSubstr("q is not a pool"));
}

TEST(ReadNodeModelTest, NamesKeysThatItDoesNotKnow) {
  EXPECT_THAT(MessageOf(placement::ReadNodeModel("machin: x", "annotation a of node n1").status()),
              HasSubstr("annotation a of node n1:1: machin"));
}

}  // namespace
}  // namespace qrm::scheduler::numa_resource_test
