// On which NUMA nodes and packages containers get exclusive CPUs, and when they get whole nodes.
#include "plugins/cpu/own_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::own_cpus_test {
namespace {

using test::Drive;
using test::Request;
using testing::HasSubstr;

constexpr char kFewest[] = "roles: {own: {numa: fewest, share-numa-with: ['*']}}";

/// Two packages of two NUMA nodes each, of eight CPUs. Firmware reports no distances.
Machine FourNodes() {
  MachineParts parts;
  for (int cpu = 0; cpu < 32; ++cpu) {
    parts.cpus.push_back(
        {.id = cpu, .core = cpu, .l3 = cpu - cpu % 8, .node = cpu / 8, .package = cpu / 16});
  }
  for (int node = 0; node < 4; ++node) {
    parts.nodes.push_back({.id = node, .package = node / 2});
  }
  return Machine(std::move(parts));
}

/// Such a machine where node 0 is taken.
Drive WithoutNode0(const std::string& config) {
  Drive drive(Make(config, FourNodes()));
  EXPECT_EQ(drive.Admit(Request("first", "own", "cpu", 8))->value, "0-7");
  return drive;
}

TEST(OwnCpusTest, TwoNodesAreOfOnePackageThatHasRoom) {
  Drive drive = WithoutNode0(kFewest);
  EXPECT_EQ(drive.Admit(Request("second", "own", "cpu", 12))->value, "16-27");
}

TEST(OwnCpusTest, TwoNodesAreOfTwoPackagesIfNoneHasRoom) {
  Drive drive = WithoutNode0(kFewest);
  ASSERT_EQ(drive.Admit(Request("second", "own", "cpu", 8))->value, "8-15");
  ASSERT_EQ(drive.Admit(Request("third", "own", "cpu", 4))->value, "16-19");
  drive.RemovePod("first");
  EXPECT_EQ(drive.Admit(Request("fourth", "own", "cpu", 14))->value, "0-7,24-29");
}

TEST(OwnCpusTest, WithoutTopologyPolicyNodesAreAsFewAndOfOnePackage) {
  Drive drive = WithoutNode0(kFewest);
  const TopologyHint any = {.nodes = NumaMask::Parse("0-3").value(), .preferred = true};
  drive.Keep(Request("second", "own", "cpu", 5),
             drive.plugin().Allocate(Request("second", "own", "cpu", 5), any));
  EXPECT_EQ(drive.Value("second"), "8-12");
  EXPECT_EQ(drive.plugin().Allocate(Request("third", "own", "cpu", 6), any)->value, "16-21");
  EXPECT_EQ(drive.plugin().Allocate(Request("fourth", "own", "cpu", 9), any)->value, "22,24-31");
}

TEST(OwnCpusTest, BeyondATooNarrowHintTheOtherNodeIsOfTheSamePackage) {
  Drive drive = WithoutNode0(kFewest);
  const auto given = drive.plugin().Allocate(Request("second", "own", "cpu", 12),
                                             {.nodes = {3}, .preferred = false});
  EXPECT_EQ(given->value, "16-19,24-31");
}

ContainerRequest Alone(const std::string& pod, double cpus) {
  ContainerRequest request = Request(pod, "", "cpu", cpus);
  request.annotations = {
      {"katalyst.kubewharf.io/qos_level", "dedicated_cores"},
      {"katalyst.kubewharf.io/memory_enhancement", R"({"numa_exclusive": "true"})"}};
  return request;
}

ContainerRequest OfPool(const std::string& pod, double cpus) {
  ContainerRequest request = Request(pod, "", "cpu", cpus);
  request.annotations = {{"katalyst.kubewharf.io/qos_level", "shared_cores"}};
  return request;
}

TEST(OwnCpusTest, NumaExclusiveGetsAllCpusOfItsNodes) {
  Drive drive(Make("reserved-cpus: 0-1"));
  EXPECT_EQ(drive.Admit(Alone("pod", 30))->value, "2-39");
  EXPECT_EQ(drive.Admit(OfPool("shared", 3))->value, "40-79");
  EXPECT_THAT(MessageOf(drive.Admit(Alone("next", 30)).status()),
              HasSubstr("the shared pool has only 40 CPUs left"));
}

TEST(OwnCpusTest, NumaExclusiveGetsNoNodeThatOthersUseInPart) {
  Drive drive(Make("roles: {own: {share-numa-with: ['*']}}"));
  ASSERT_EQ(drive.Admit(Request("first", "own", "cpu", 1))->value, "0");
  EXPECT_THAT(MessageOf(drive.Admit(Alone("pod", 50)).status()),
              HasSubstr("(node 0: occupied by own, node 1: 40 free)"));

  Drive beside(Make("pools: {batch: {cpus: 70-79}}"));
  ASSERT_EQ(beside.Admit(Alone("pod", 30))->value, "0-39");
  EXPECT_THAT(MessageOf(beside.Admit(Alone("next", 29)).status()),
              HasSubstr("node 1: others use a part of it"));
}

TEST(OwnCpusTest, PoolsMoveOffTheNodesOfNumaExclusive) {
  Drive drive(
      Make("pools: {share: {size: {min: 4}}, default: {size: {min: 2}}}\n"
           "roles: {own: {share-numa-with: ['*']}}"));
  ASSERT_EQ(drive.Admit(OfPool("shared", 10))->value, "2-11");
  const auto first = drive.plugin().Allocate(Request("first", "own", "cpu", 1), {.nodes = {1}});
  drive.Keep(Request("first", "own", "cpu", 1), first);
  ASSERT_EQ(first->value, "40");
  EXPECT_EQ(drive.Admit(Alone("pod", 30))->value, "0-39");
  drive.Reconcile();
  EXPECT_EQ(drive.Value("shared"), "43-52");
}

TEST(OwnCpusTest, NumaExclusiveLeavesPoolsWhatTheirContainersRequest) {
  Drive drive(Make("pools: {share: {size: {min: 4}}, default: {size: {min: 2}}}"));
  ASSERT_TRUE(drive.Admit(OfPool("shared", 39)).ok());
  EXPECT_THAT(MessageOf(drive.Admit(Alone("pod", 30)).status()),
              HasSubstr("it takes all CPUs of NUMA nodes 0, and pools need some of them"));
}

TEST(OwnCpusTest, NumaExclusiveKeepsItsNodesThroughResizes) {
  Drive drive(Make("reserved-cpus: 0-1"));
  ASSERT_EQ(drive.Admit(Alone("pod", 30))->value, "2-39");
  EXPECT_EQ(drive.Admit(Alone("pod", 36))->value, "2-39");
  EXPECT_EQ(drive.Admit(Alone("pod", 20))->value, "2-39");
}

}  // namespace
}  // namespace qrm::cpu::own_cpus_test
