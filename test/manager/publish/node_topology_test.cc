#include "manager/publish/node_topology.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/sample_node.h"

namespace qrm::manager::node_topology_test {
namespace {

using nlohmann::json;
using test::Admit;
using test::NodeMemory;
using test::OwnCpus;
using test::SampleMachine;
using test::SamplePod;

/// As the cpu plugin gives CPUs of a pool.
ResourceAllocation SharedOnNodes(const std::string& cpus,
                                 const std::map<uint64_t, uint64_t>& cpus_by_node) {
  ResourceAllocation shared = test::SharedCpus(cpus, 1);
  shared.amount_by_node = cpus_by_node;
  return shared;
}

/// Two nodes of 4 CPUs and 16 GiB; CPU 0 and a GiB of node 0 are reserved.
class NodeTopologyTest : public testing::Test {
 protected:
  NodeTopologyTest() {
    allocatable_["cpu"] = {.allocatable = 7,
                           .capacity = 8,
                           .allocatable_by_node = {{0, 3}, {1, 4}},
                           .capacity_by_node = {{0, 4}, {1, 4}},
                           .allocatable_cpus = *CpuSet::Parse("1-7")};
    allocatable_["memory"] = {
        .allocatable_by_node = {{0, 15.0 * test::kGiB}, {1, 16.0 * test::kGiB}},
        .capacity_by_node = {{0, 16.0 * test::kGiB}, {1, 16.0 * test::kGiB}}};
  }

  json Topology(TopologyPolicy policy = TopologyPolicy::kSingleNumaNode) const {
    return NodeTopologyOf({.state = state_,
                           .machine = machine_,
                           .allocatable = allocatable_,
                           .policy = policy,
                           .scope = TopologyScope::kPod});
  }
  /// The entry of a resource in the zone of `node`; null when there is none.
  json Resource(const std::string& name, int node) const {
    const json topology = Topology();
    for (const json& resource : topology["zones"].at(static_cast<std::size_t>(node))["resources"]) {
      if (resource["name"] == name) {
        return resource;
      }
    }
    return nullptr;
  }
  std::string Attribute(const std::string& name, TopologyPolicy policy) const {
    const json topology = Topology(policy);
    for (const json& attribute : topology["attributes"]) {
      if (attribute["name"] == name) {
        return attribute["value"];
      }
    }
    return "";
  }
  void Take(const checkpoint::Change& change) { state_ = state_.With(change); }

  Machine machine_ = SampleMachine();
  AllocatableByResource allocatable_;
  checkpoint::NodeState state_;
};

TEST_F(NodeTopologyTest, AZoneOfANodeWithoutPodsHasTheFormThatReadersExpect) {
  EXPECT_EQ(Topology()["zones"].at(0), json::parse(R"({
    "name": "node-0", "type": "Node",
    "costs": [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 20}],
    "resources": [
      {"name": "cpu", "capacity": "4", "allocatable": "3", "available": "3"},
      {"name": "memory", "capacity": "17179869184", "allocatable": "16106127360",
       "available": "16106127360"}]})"));
}

TEST_F(NodeTopologyTest, CpusOfOneContainerAreNotAvailable) {
  Take(Admit(SamplePod("a"), "c", {{"cpu", OwnCpus("1-2,4")}}));
  EXPECT_EQ(Resource("cpu", 0)["available"], "1");
  EXPECT_EQ(Resource("cpu", 1)["available"], "3");
}

TEST_F(NodeTopologyTest, CpusThatAreSharedStayAvailable) {
  // Of the default pool, as one of a skipped pod, and of an elastic pool on one node.
  Take(Admit(SamplePod("a"), "c", {{"cpu", SharedOnNodes("1-7", {{0, 3}, {1, 4}})}}));
  Take(Admit(SamplePod("proxy", "kube-system"), "c",
             {{"cpu", SharedOnNodes("1-7", {{0, 3}, {1, 4}})}}));
  Take(Admit(SamplePod("b"), "c", {{"cpu", SharedOnNodes("4-5", {{1, 2}})}}));
  EXPECT_EQ(Resource("cpu", 0)["available"], "3");
  EXPECT_EQ(Resource("cpu", 1)["available"], "4");
}

TEST_F(NodeTopologyTest, ReservedCpusThatAContainerHasCountOnce) {
  Take(Admit(SamplePod("a"), "c", {{"cpu", OwnCpus("0")}}));
  EXPECT_EQ(Resource("cpu", 0)["available"], "3");
}

TEST_F(NodeTopologyTest, BoundMemoryIsNotAvailable) {
  Take(Admit(SamplePod("a"), "c", {{"memory", NodeMemory({{1, 6 * test::kGiB}})}}));
  EXPECT_EQ(Resource("memory", 1)["available"], std::to_string(10 * test::kGiB));
}

TEST_F(NodeTopologyTest, OfInitContainersTheLargestCounts) {
  Take(Admit(SamplePod("a"), "i1", {{"memory", NodeMemory({{0, 2 * test::kGiB}})}},
             ContainerType::kInit, 0));
  Take(Admit(SamplePod("a"), "i2", {{"memory", NodeMemory({{0, 3 * test::kGiB}})}},
             ContainerType::kInit, 1));
  EXPECT_EQ(Resource("memory", 0)["available"], std::to_string(12 * test::kGiB));
}

TEST_F(NodeTopologyTest, AResourceOfAPluginIsInTheZonesThatHaveIt) {
  allocatable_["example.com/nic"] = {.allocatable_by_node = {{1, 8}}, .capacity_by_node = {{1, 8}}};
  Take(Admit(SamplePod("a"), "c",
             {{"example.com/nic", ResourceAllocation{.amount_by_node = {{1, 2}}}}}));
  EXPECT_EQ(Resource("example.com/nic", 0), nullptr);
  EXPECT_EQ(Resource("example.com/nic", 1)["available"], "6");
}

TEST_F(NodeTopologyTest, HugepagesOfBoundContainersAreTakenFromTheirNodesInOrder) {
  MachineParts parts = machine_.parts();
  parts.nodes[0].hugepages = parts.nodes[1].hugepages = {{1 << 30, 4}};
  machine_ = Machine(parts);
  allocatable_["hugepages-1Gi"] = {
      .allocatable_by_node = {{0, 3.0 * test::kGiB}, {1, 4.0 * test::kGiB}},
      .capacity_by_node = {{0, 4.0 * test::kGiB}, {1, 4.0 * test::kGiB}}};
  checkpoint::Change change =
      Admit(SamplePod("a"), "c", {{"memory", NodeMemory({{0, test::kGiB}, {1, test::kGiB}})}});
  change.put_containers[0].record.requests =
      std::map<std::string, double>{{"hugepages-1Gi", 4.0 * test::kGiB}};
  Take(change);
  EXPECT_EQ(Resource("hugepages-1Gi", 0)["available"], "0");
  EXPECT_EQ(Resource("hugepages-1Gi", 1)["available"], std::to_string(3 * test::kGiB));
}

TEST_F(NodeTopologyTest, HugepagesAreListedBySize) {
  MachineParts parts = machine_.parts();
  parts.nodes[0].hugepages = {{2 << 20, 64}, {1 << 30, 2}};
  machine_ = Machine(std::move(parts));
  Take(Admit(SamplePod("a"), "c",
             {{"hugepages-2Mi", ResourceAllocation{.amount_by_node = {{0, 64 << 20}}}}}));
  EXPECT_EQ(Resource("hugepages-2Mi", 0)["available"], std::to_string(64 << 20));
  EXPECT_EQ(Resource("hugepages-1Gi", 0)["available"], std::to_string(2 * test::kGiB));
  EXPECT_EQ(Resource("hugepages-2Mi", 1), nullptr);
}

TEST_F(NodeTopologyTest, APolicyThatReadersDoNotKnowIsNoneToThem) {
  EXPECT_EQ(Attribute("topologyManagerPolicy", TopologyPolicy::kSingleNumaNode),
            "single-numa-node");
  EXPECT_EQ(Attribute("topologyManagerScope", TopologyPolicy::kSingleNumaNode), "pod");
  EXPECT_EQ(Attribute("topologyManagerPolicy", TopologyPolicy::kNumeric), "none");
  EXPECT_EQ(Attribute("qrmTopologyPolicy", TopologyPolicy::kNumeric), "numeric");
}

TEST(AmountTextTest, IsWholeOrInThousandths) {
  EXPECT_EQ(AmountText(4), "4");
  EXPECT_EQ(AmountText(1.5), "1500m");
  EXPECT_EQ(AmountText(0.1 + 0.2), "300m");
}

struct FingerprintCase {
  std::string name;
  std::vector<PodName> pods;
  std::string want;
};

class PodsFingerprintTest : public testing::TestWithParam<FingerprintCase> {};

TEST_P(PodsFingerprintTest, IsWhatReadersCompute) {
  EXPECT_EQ(PodsFingerprint(GetParam().pods), GetParam().want);
}

// Of the published implementation, and of libxxhash.
const FingerprintCase kCases[] = {
    {"NoPod", {}, "pfp0v001ef46db3751d8e999"},
    {"OnePod", {{"default", "web"}}, "pfp0v001e2494ad8715b4de9"},
    {"TwoPods",
     {{"kube-system", "kube-proxy-x7k2p"}, {"default", "web"}},
     "pfp0v00175798c036945318b"},
    {"TwoPodsInAnotherOrder",
     {{"default", "web"}, {"kube-system", "kube-proxy-x7k2p"}},
     "pfp0v00175798c036945318b"},
    {"FivePodsInThreeNamespaces",
     {{"ns1", "n1"}, {"ns1", "n2"}, {"ns2", "n1"}, {"ns3", "n1"}, {"ns3", "n2"}},
     "pfp0v001b92008c14168b3a6"},
};
INSTANTIATE_TEST_SUITE_P(Vectors, PodsFingerprintTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::manager::node_topology_test
