// Containers from before a restart of the cpu plugin.
#include <gtest/gtest.h>

#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::cpu_restart_test {
namespace {

using test::Drive;
using test::ExampleMachine;
using test::Request;

TEST(CpuAdoptionTest, LeavesARunningContainerTheCpusThatItHas) {
  Drive drive(Make(kThreeRoles));
  ContainerRequest request = Request("pod1", "reranker", "cpu", 3);
  request.runs_on = {44, 45, 64};
  const auto kept = drive.Admit(request);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->value, "44-45,64");
}

TEST(CpuAdoptionTest, PlacesARunningContainerAgainWhereItsCpusAreNotExclusiveOrNotEnough) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("pod1", "numa-enhancement", "cpu", 2)).ok());
  const CpuSet taken = *CpuSet::Parse(drive.Value("pod1"));
  ContainerRequest request = Request("pod2", "numa-enhancement", "cpu", 2);
  request.runs_on = taken;
  const auto other = drive.Admit(request);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(CpuSet::Parse(other->value)->Intersects(taken));

  request = Request("pod3", "numa-enhancement", "cpu", 2);
  request.runs_on = {30};
  EXPECT_EQ(CpuSet::Parse(drive.Admit(request)->value)->Count(), 2);
}

TEST(CpuRestartTest, KeepsPoolsAndExclusiveCpus) {
  Drive before(Make(kThreeRoles + std::string("pools: {web: {cpus: \"60-69\", roles: [web]}}")));
  ASSERT_TRUE(before.plugin().SetPools({{"web", CpuSet::Range(70, 79)}}).ok());
  ASSERT_TRUE(before.Admit(Request("pod1", "storage-service", "cpu", 20)).ok());
  ASSERT_TRUE(before.Admit(Request("web", "web", "cpu", 1)).ok());

  Drive after(Make(kThreeRoles + std::string("pools: {web: {cpus: \"60-69\", roles: [web]}}")),
              before);
  EXPECT_EQ(after.plugin().ExportState(after.grants()),
            before.plugin().ExportState(before.grants()));
  EXPECT_EQ(after.Admit(Request("pod2", "reranker", "cpu", 10))->value, "42-51");
  after.Reconcile();
  EXPECT_EQ(after.Value("web"), "70-79");
}

TEST(CpuRestartTest, ChangedConfigurationOfPoolWinsOverItsSavedSize) {
  Drive before(Make("pools: {web: {cpus: \"60-69\"}}"));
  ASSERT_TRUE(before.plugin().SetPools({{"web", CpuSet::Range(70, 79)}}).ok());
  Drive after(Make("pools: {web: {cpus: \"50-59\"}}"), before);
  EXPECT_EQ(ToString(after.plugin().Pools()[0].cpus), "50-59");
}

TEST(CpuRestartTest, OwnersKeepCpusThatPoolWasGiven) {
  Drive before(Make(kThreeRoles));
  ASSERT_EQ(before.Admit(Request("pod1", "storage-service", "cpu", 4))->value, "2-5");
  Drive after(Make(kThreeRoles + std::string("pools: {web: {cpus: \"4-9\"}}")), before);
  EXPECT_EQ(ToString(after.plugin().Pools()[0].cpus), "6-9");
  after.Reconcile();
  EXPECT_EQ(after.Value("pod1"), "2-5");
}

TEST(CpuRestartTest, RepairsCpusThatMachineLost) {
  Drive before(Make("roles: {r: {numa: fewest}}"));
  ASSERT_EQ(before.Admit(Request("pod1", "r", "cpu", 60))->quantity, 60);
  MachineParts parts = ExampleMachine().parts();
  parts.cpus.resize(40);
  parts.nodes.resize(1);
  Drive after(Make("roles: {r: {numa: fewest}}", Machine(parts)), before);
  after.Reconcile();
  EXPECT_TRUE(CpuSet::Parse(after.Value("pod1"))->IsSubsetOf(CpuSet::Range(0, 39)));
}

constexpr char kRole[] = "roles: {r: {numa: any, share-numa-with: [\"*\"]}}";

/// A machine that lost all CPUs except the CPUs of its first node.
Machine WithoutSecondNode() {
  MachineParts parts = ExampleMachine().parts();
  parts.cpus.resize(40);
  parts.nodes.resize(1);
  return Machine(parts);
}

TEST(CpuRestartTest, CpusThatMachineLostAreReplacedWhenThereIsRoom) {
  Drive before(Make(kRole));
  ContainerRequest request = Request("pod1", "r", "cpu", 4);
  request.runs_on = {38, 39, 40, 41};
  ASSERT_EQ(before.Admit(request)->value, "38-41");
  Drive after(Make(kRole, WithoutSecondNode()), before);
  after.Reconcile();
  EXPECT_EQ(after.Value("pod1"), "38-39");
  EXPECT_EQ(after.Of("pod1").lacks, 2);
  const auto whole = after.Admit(Request("pod1", "r", "cpu", 4));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(CpuSet::Parse(whole->value)->Count(), 4);
  EXPECT_TRUE(CpuSet({38, 39}).IsSubsetOf(*CpuSet::Parse(whole->value)));
  EXPECT_EQ(whole->lacks, 0);
  EXPECT_EQ(whole->grown, "") << "it started with as many";
}

TEST(CpuRestartTest, TheLossOfCpusThatAContainerGrewByLeavesItsBaselineAsItWas) {
  Drive before(Make(kRole));
  ContainerRequest request = Request("pod1", "r", "cpu", 2);
  request.runs_on = {38, 39};
  ASSERT_EQ(before.Admit(request)->value, "38-39");
  ContainerRequest neighbour = Request("pod2", "r", "cpu", 38);
  neighbour.runs_on = CpuSet::Range(0, 37);
  ASSERT_EQ(before.Admit(neighbour)->value, "0-37");
  ASSERT_TRUE(before.Admit(Request("pod1", "r", "cpu", 4)).ok());
  ASSERT_GE(CpuSet::Parse(before.Of("pod1").grown)->First(), 40);
  before.RemovePod("pod2");
  Drive after(Make(kRole, WithoutSecondNode()), before);
  after.Reconcile();
  ASSERT_EQ(after.Value("pod1"), "38-39");
  const auto whole = after.Admit(Request("pod1", "r", "cpu", 4));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(CpuSet::Parse(whole->value)->Count(), 4);
  EXPECT_EQ(after.Admit(Request("pod1", "r", "cpu", 1))->value, "38-39");
}

TEST(CpuRestartTest, AContainerThatLostAllItsCpusGetsOthersWhenThereIsRoom) {
  Drive before(Make(kRole));
  ContainerRequest request = Request("pod1", "r", "cpu", 2);
  request.runs_on = {60, 61};
  ASSERT_EQ(before.Admit(request)->value, "60-61");
  Drive after(Make(kRole, WithoutSecondNode()), before);
  after.Reconcile();
  EXPECT_FALSE(after.Of("pod1").exclusive);
  EXPECT_EQ(after.Of("pod1").lacks, 2);
  Drive later(Make(kRole), after);
  later.Reconcile();
  EXPECT_EQ(later.Of("pod1").lacks, 2) << "it still waits after a restart";
  const auto whole = later.Admit(Request("pod1", "r", "cpu", 2));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->exclusive);
  EXPECT_EQ(whole->lacks, 0);
}

TEST(CpuRestartTest, UnreadableSavedPoolsFallBackToConfiguration) {
  auto plugin = Make(kTwoPools);
  for (const char* text : {"", "{", "[]", R"({"pools": {"online": 3}})",
                           R"({"pools": {"online": {"cpus": "x", "configured": "1"}}})"}) {
    EXPECT_TRUE(plugin->LoadState(text).ok());
    EXPECT_EQ(ToString(plugin->Pools()[1].cpus), "0-37,40-77");
  }
}

}  // namespace
}  // namespace qrm::cpu::cpu_restart_test
