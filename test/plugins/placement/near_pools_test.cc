// Memory and NICs of containers in pools lie on the nodes of the pools' CPUs.
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/placement/node_model.h"
#include "plugins/placement/walk.h"

namespace qrm::placement::near_pools_test {
namespace {

/// Nodes of 4 CPUs and 8 GiB each, with a NIC each.
NodeModelPtr Model(int nodes, const std::string& pool) {
  std::string nics;
  for (int node = 0; node < nodes; ++node) {
    nics += fmt::format("{{interface: eth{0}, numa-node: {0}, ipv4: 192.0.2.{0}}}, ", node);
  }
  const auto model = ReadNodeModel(fmt::format(R"(
machine: "synthetic:package:{} [numa(memory=8GiB)] core:4 pu:1"
plugins:
  cpu: {{pools: {{web: {{cpus: "{}"}}}}, rules: [{{select: {{role: web}}, pool: web}}]}}
  memory: {{roles: {{web: {{share-numa-with: ['*']}}}}}}
  nic: {{resource: a.io/nic, nics: [{}]}}
)",
                                               nodes, pool, nics),
                                   "node");
  EXPECT_TRUE(model.ok()) << model.status();
  return model.value_or(nullptr);
}

ContainerDemand Web(const std::string& pod, double memory) {
  ContainerDemand demand;
  demand.pod.uid = pod;
  demand.pod.pod_namespace = "default";
  demand.pod.name = pod;
  demand.pod.role = "web";
  demand.container = "main";
  demand.requests = {{"cpu", 1}, {"memory", memory}, {"a.io/nic", 1}};
  return demand;
}

constexpr double kGiB = 1 << 30;

struct Case {
  std::string name;
  int nodes;
  std::string pool;  ///< its CPUs
  int first;         ///< the node that has most of them, which memory and NIC are on
};

void PrintTo(const Case& pool, std::ostream* out) {
  *out << pool.name;
}

class NearPoolsTest : public testing::TestWithParam<Case> {};

TEST_P(NearPoolsTest, MemoryAndNicAreOnTheNodeWithMostOfThePoolsCpusWhileItHasRoom) {
  const Case& pool = GetParam();
  const NodeModelPtr model = Model(pool.nodes, pool.pool);
  ASSERT_NE(model, nullptr);
  const NumaMask nodes = model->machine.NodesOf(*CpuSet::Parse(pool.pool));
  NodeHoldings held = NothingHeld(*model);
  for (int i = 0; i < 4 * nodes.Count(); ++i) {  // each node has room for two
    const auto placed = PlacePod(*model, {Web(fmt::format("p{}", i), 3 * kGiB)}, held);
    ASSERT_TRUE(placed.ok()) << placed.status();
    held = placed->after;
    const auto& grants = placed->placement.grants;
    const NumaMask mems = *NumaMask::Parse(grants.at("memory").begin()->second.allocation->value);
    const auto& nic = grants.at("a.io/nic").begin()->second.allocation;
    if (i < 2) {
      EXPECT_EQ(mems, NumaMask({pool.first}));
      EXPECT_EQ(nic->envs.at("AFFINITY_NIC_ADDR_IPV4"), fmt::format("192.0.2.{}", pool.first));
    }
    EXPECT_EQ(mems.IsSubsetOf(nodes), i < 2 * nodes.Count()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Pools, NearPoolsTest,
                         testing::Values(Case{"TwoNodesOne", 2, "4-6", 1},
                                         Case{"FourNodesOne", 4, "9-10", 2},
                                         Case{"FourNodesTwo", 4, "8-15", 2},
                                         Case{"FourNodesUneven", 4, "7-11", 2},
                                         Case{"EightNodesTwo", 8, "20-21,28-29", 5},
                                         Case{"EightNodesUneven", 8, "4,12-15,24-25", 3}),
                         [](const auto& pool) { return pool.param.name; });

TEST(NearPoolsOnAllNodesTest, APoolWithCpusOfAllNodesPrefersNone) {
  const NodeModelPtr model = Model(2, "2-6");
  ASSERT_NE(model, nullptr);
  const auto placed = PlacePod(*model, {Web("p", kGiB)}, NothingHeld(*model));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->placement.grants.at("memory").begin()->second.allocation->value, "0");
}

}  // namespace
}  // namespace qrm::placement::near_pools_test
