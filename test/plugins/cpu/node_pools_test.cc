// Pools with an instance for each NUMA node: containers spread over the nodes, and stay there.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/four_nodes.h"
#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::node_pools_test {
namespace {

using test::Drive;
using test::Request;
using testing::HasSubstr;

constexpr char kByNode[] = R"(
reserved-cpus: "0"
rules: [{select: {role: shared}, pool: shared}, {select: {role: mixed}, grant: mixed}]
pools:
  shared: {size: {}, instances: {by: numa-node}, borrow: {idle: numa}}
  default: {size: {}}
grants: {mixed: {plus: shared, share-numa-with: ["*"]}}
)";

std::string Admit(Drive& drive, const std::string& pod, const std::string& role, double cpus) {
  const auto admitted = drive.Admit(Request(pod, role, "cpu", cpus));
  return admitted.ok() ? admitted->value : MessageOf(admitted.status());
}

// As test07-mixed-allocations of nri-plugins at 107e4ee5, up to its first mixed container.
TEST(NodePoolsTest, ContainersSpreadOverNodesAndUseAllIdleCpusThere) {
  Drive drive(Make(kByNode, FourNodes()));
  EXPECT_EQ(Admit(drive, "a", "shared", 0.5), "4-7");
  EXPECT_EQ(Admit(drive, "b", "shared", 0.5), "8-11");
  EXPECT_EQ(Admit(drive, "c", "shared", 2.4), "12-15");
  EXPECT_EQ(Admit(drive, "d", "shared", 2.4), "4-7") << "node 0 has three CPUs";
}

TEST(NodePoolsTest, TheSharedCpusOfAMixedContainerAreOfItsNode) {
  Drive drive(Make(kByNode, FourNodes()));
  ASSERT_EQ(Admit(drive, "a", "shared", 0.5), "4-7");
  EXPECT_EQ(Admit(drive, "b", "mixed", 1.5), "8") << "of the nodes with most CPUs left";
  EXPECT_EQ(drive.Of("b").shares, "9-11");
  EXPECT_EQ(Admit(drive, "c", "mixed", 3.5), "12-14");
  EXPECT_EQ(drive.Of("c").shares, "15");
  EXPECT_EQ(Admit(drive, "d", "mixed", 3.5), "5-7") << "node 1 keeps one for its pool";
  EXPECT_EQ(drive.Of("d").shares, "4");
  drive.Reconcile();
  EXPECT_EQ(drive.Value("a"), "4");
  drive.RemovePod("d");
  drive.Reconcile();
  EXPECT_EQ(drive.Value("a"), "4-7");
}

TEST(NodePoolsTest, AContainerStaysOnItsNodeThroughResizesAndRestarts) {
  Drive drive(Make(kByNode, FourNodes()));
  ASSERT_EQ(Admit(drive, "a", "shared", 0.5), "4-7");
  ASSERT_EQ(Admit(drive, "b", "shared", 3.5), "8-11");
  EXPECT_EQ(Admit(drive, "a", "shared", 3), "4-7");
  const TopologyHint any = {.nodes = NumaMask::Parse("0-3").value(), .preferred = true};
  EXPECT_EQ(drive.plugin().Allocate(Request("b", "shared", "cpu", 4), any)->value, "8-11");
  Drive restarted(Make(kByNode, FourNodes()), drive);
  restarted.Reconcile();
  EXPECT_EQ(restarted.Value("a") + " " + restarted.Value("b"), "4-7 8-11");
  EXPECT_EQ(Admit(restarted, "c", "shared", 1), "12-15");
}

TEST(NodePoolsTest, SharedPodsThatAskForItAreBoundToANode) {
  Drive drive(Make(R"(
reserved-cpus: "0"
pools:
  share: {size: {min: 4}, numa-bound: share-numa}
  share-numa: {size: {}, instances: {by: numa-node}, borrow: {idle: numa}}
  default: {size: {}}
)",
                   FourNodes()));
  const auto request = [](const std::string& pod, const std::string& memory) {
    ContainerRequest asked = Request(pod, "", "cpu", 1);
    asked.annotations.Edit()["katalyst.kubewharf.io/qos_level"] = "shared_cores";
    asked.annotations.Edit()["katalyst.kubewharf.io/memory_enhancement"] = memory;
    return asked;
  };
  const auto unbound = drive.Admit(request("a", "{}"));
  ASSERT_TRUE(unbound.ok()) << unbound.status();
  EXPECT_EQ(unbound->pool, "share");
  const auto bound = drive.Admit(request("b", R"({"numa_binding": "true"})"));
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->shares_of + " " + bound->decided_by,
            "share-numa/1 annotation memory_enhancement");
  ContainerRequest on_node = request("c", R"({"numa_binding": "true"})");
  on_node.annotations.Edit()["katalyst.kubewharf.io/numa_ids"] = "3";
  const auto chosen = drive.Admit(on_node);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->shares_of, "share-numa/3");
  ContainerRequest nowhere = request("d", R"({"numa_binding": "true"})");
  nowhere.annotations.Edit()["katalyst.kubewharf.io/numa_ids"] = "7";
  EXPECT_THAT(MessageOf(drive.Admit(nowhere).status()), HasSubstr("has no CPU on NUMA nodes 7"));
}

TEST(NodePoolsTest, WithoutOvercommitAContainerThatFitsNoNodeIsRejected) {
  Drive drive(Make(R"(
reserved-cpus: "0"
rules: [{select: {role: shared}, pool: shared}]
pools:
  shared: {size: {overcommit: refuse}, instances: {by: numa-node}, borrow: {idle: numa}}
  default: {size: {}}
)",
                   FourNodes()));
  for (const char* const pod : {"a", "b", "c"}) {
    ASSERT_TRUE(drive.Admit(Request(pod, "shared", "cpu", 3.5)).ok());
  }
  EXPECT_THAT(Admit(drive, "d", "shared", 3.5), HasSubstr("would request"));
  EXPECT_EQ(Admit(drive, "e", "shared", 3), "1-3");
}

}  // namespace
}  // namespace qrm::cpu::node_pools_test
