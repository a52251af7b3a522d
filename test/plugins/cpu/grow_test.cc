// Containers with exclusive CPUs that are resized in place.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::grow_test {
namespace {

using test::Drive;

// 64 CPUs; threads i and i+32 are a core, node 0 has 0-15 and 32-47.
constexpr char kRoles[] = R"(
isolated-cpus: "12-15,44-47"
roles:
  any: {numa: any, share-numa-with: ["*"]}
  one: {share-numa-with: ["*"]}
  even: {numa: even, share-numa-with: ["*"]}
  whole: {whole-cores: true, share-numa-with: ["*"]}
  mixed: {numa: any, isolated: prefer, share-numa-with: ["*"]}
)";

class GrowTest : public ElasticPlugins {
 protected:
  /// What `pod` of role `role` gets now.
  CpuSet Has(const std::string& pod, const std::string& role, int cpus) {
    const auto given = drive_.Admit(test::Request(pod, role, "cpu", cpus));
    EXPECT_TRUE(given.ok()) << given.status();
    return given.ok() ? *CpuSet::Parse(given->value) : CpuSet();
  }
  Status Refusal(const std::string& pod, const std::string& role, int cpus) {
    return drive_.Admit(test::Request(pod, role, "cpu", cpus)).status();
  }

  Drive drive_ = Start(kRoles);
};

TEST_F(GrowTest, KeepsTheCpusThatItHas) {
  const CpuSet before = Has("a", "any", 3);
  const CpuSet neighbour = Has("b", "any", 4);
  const CpuSet after = Has("a", "any", 9);
  EXPECT_EQ(after.Count(), 9);
  EXPECT_TRUE(before.IsSubsetOf(after)) << ToString(after);
  EXPECT_FALSE(after.Intersects(neighbour));
}

TEST_F(GrowTest, GetsTheOtherThreadsOfItsCoresFirst) {
  EXPECT_EQ(ToString(Has("a", "any", 3)), "0-1,32");
  EXPECT_EQ(ToString(Has("a", "any", 4)), "0-1,32-33");
}

// At any time a pod counts as in Kubernetes: the larger of init containers and the others.
TEST_F(GrowTest, TakesOverTheCpusOfItsPodsInitContainers) {
  Drive drive = Start(R"({
    grants: {own: {numa: any, containers: all, share-numa-with: ["*"]}},
    rules: [{select: {cpu: whole}, grant: own}]})");
  const auto admit = [&](const std::string& pod, const std::string& container, ContainerType type,
                         int cpus) {
    ContainerRequest request = test::Request(pod, "", "cpu", cpus);
    request.key.container = container;
    request.type = type;
    const auto given = drive.Admit(request);
    EXPECT_TRUE(given.ok()) << given.status();
    return given.ok() ? *CpuSet::Parse(given->value) : CpuSet();
  };
  const CpuSet init = admit("pod", "init", ContainerType::kInit, 36);
  const CpuSet main = admit("pod", "main", ContainerType::kMain, 40);
  EXPECT_TRUE(init.IsSubsetOf(main)) << ToString(main);
  const CpuSet sidecar = admit("pod", "sidecar", ContainerType::kSidecar, 4);
  EXPECT_FALSE(sidecar.Intersects(main)) << "they run at the same time";
  const CpuSet other = admit("other", "main", ContainerType::kMain, 19);
  EXPECT_FALSE(other.Intersects(main | sidecar));
  EXPECT_EQ(admit("pod", "again", ContainerType::kInit, 40), main) << "its sandbox was replaced";
}

TEST_F(GrowTest, GivesUpTheAddedCpusAndKeepsTheCpusOfItsFirstStart) {
  const CpuSet first = Has("a", "any", 3);
  Has("a", "any", 8);
  const CpuSet after = Has("a", "any", 5);
  EXPECT_EQ(after.Count(), 5);
  EXPECT_TRUE(first.IsSubsetOf(after)) << ToString(after);
  EXPECT_EQ(Has("a", "any", 1), first);
  EXPECT_EQ(drive_.Of("a").grown, "");
}

TEST_F(GrowTest, OthersGetWhatAContainerGaveUp) {
  Has("a", "any", 2);
  Has("a", "any", 40);
  EXPECT_FALSE(Refusal("b", "any", 40).ok());
  Has("a", "any", 2);
  EXPECT_EQ(Has("b", "any", 40).Count(), 40);
}

TEST_F(GrowTest, KeepsItsBaselineThroughARestart) {
  const CpuSet first = Has("a", "any", 3);
  Has("a", "any", 8);
  Drive after = Restart(kRoles, drive_);
  const auto shrunk = after.Admit(test::Request("a", "any", "cpu", 2));
  ASSERT_TRUE(shrunk.ok()) << shrunk.status();
  EXPECT_EQ(shrunk->value, ToString(first));
}

TEST_F(GrowTest, AContainerOfAPoolThatGotExclusiveCpusMayReturn) {
  Drive drive = Start("static: true");
  ContainerRequest request = test::Request("a", "", "cpu", 0.5);
  request.native_qos_class = "Guaranteed";
  const auto resize = [&](double cpus) {
    request.requests = {{"cpu", cpus}};
    const auto given = drive.Admit(request);
    EXPECT_TRUE(given.ok()) << given.status();
    return given.ok() ? *given : ResourceAllocation();
  };
  EXPECT_FALSE(resize(0.5).exclusive);
  EXPECT_TRUE(resize(2).exclusive);
  EXPECT_FALSE(resize(0.5).exclusive);
}

TEST_F(GrowTest, UnderTheStaticPolicyItKeepsItsCpusToo) {
  Drive drive = Start("static: true");
  ContainerRequest request = test::Request("a", "", "cpu", 2);
  request.native_qos_class = "Guaranteed";
  const auto resize = [&](double cpus) {
    request.requests = {{"cpu", cpus}};
    const auto given = drive.Admit(request);
    EXPECT_TRUE(given.ok()) << given.status();
    return given.ok() ? *CpuSet::Parse(given->value) : CpuSet();
  };
  const CpuSet first = resize(2);
  const CpuSet grown = resize(5);
  EXPECT_EQ(grown.Count(), 5);
  EXPECT_TRUE(first.IsSubsetOf(grown));
  EXPECT_EQ(resize(1.5), first) << "it would share a pool, and keeps the CPUs of its first start";
}

TEST_F(GrowTest, AContainerWithAPoolBesideItsCpusGrowsAndShrinks) {
  Drive drive = Start(
      "pools: {help: {cpus: \"60-63\"}}\n"
      "grants: {mixed: {numa: any, plus: help, share-numa-with: [\"*\"]}}\n"
      "rules: [{grant: mixed}]");
  const auto own = [&](double cpus) {
    const auto given = drive.Admit(test::Request("a", "", "cpu", cpus));
    EXPECT_TRUE(given.ok()) << given.status();
    return given.ok() ? *CpuSet::Parse(given->value) : CpuSet();
  };
  const CpuSet first = own(2.5);
  EXPECT_EQ(first.Count(), 2);
  EXPECT_EQ(own(4.5).Count(), 4);
  EXPECT_EQ(own(1.5), first);
}

TEST_F(GrowTest, StaysOnItsNodeAndKeepsItsCpusWhereTheNodeIsFull) {
  const CpuSet before = Has("a", "one", 8);
  ASSERT_EQ(before & TwoNodes().CpusOf({0}), before);
  const CpuSet after = Has("a", "one", 20);
  EXPECT_EQ(after & TwoNodes().CpusOf({0}), after);
  EXPECT_TRUE(before.IsSubsetOf(after));
  EXPECT_FALSE(Refusal("a", "one", 25).ok()) << "node 0 has 24 CPUs that are not isolated";
  EXPECT_EQ(drive_.Value("a"), ToString(after));
  EXPECT_EQ(Has("a", "one", 24).Count(), 24) << "it holds its CPUs still";
}

TEST_F(GrowTest, SpreadsEvenlyOverTheSameNodes) {
  const CpuSet before = Has("a", "even", 40);
  const CpuSet after = Has("a", "even", 44);
  EXPECT_TRUE(before.IsSubsetOf(after));
  for (const int node : {0, 1}) {
    EXPECT_EQ((after & TwoNodes().CpusOf({node})).Count(), 22);
  }
}

TEST_F(GrowTest, GrowsByWholeCores) {
  const CpuSet before = Has("a", "whole", 2);
  Has("b", "any", 1);  // splits the next core
  const CpuSet after = Has("a", "whole", 6);
  EXPECT_TRUE(before.IsSubsetOf(after));
  EXPECT_EQ(TwoNodes().CoresOf(after), after);
}

TEST_F(GrowTest, StaysOnCpusOfItsKind) {
  EXPECT_EQ(ToString(Has("a", "mixed", 6)), "12-14,44-46");
  const CpuSet usual = Has("b", "mixed", 3);
  EXPECT_EQ(ToString(Has("a", "mixed", 8)), "12-15,44-47");
  drive_.RemovePod("a");
  const CpuSet grown = Has("b", "mixed", 5);
  EXPECT_TRUE(usual.IsSubsetOf(grown)) << "isolated ones are free, and it does not move there";
}

TEST_F(GrowTest, APoolsContainerThatMayNotGrowKeepsItsAllocation) {
  Drive drive = Start(
      "pools: {web: {size: {max: 60}, place: {numa: one, require: numa}, roles: [web]}, "
      "default: {size: {min: 2}}}");
  Admit(drive, "a", "web", 8);
  EXPECT_FALSE(drive.plugin().Allocate(test::Request("a", "web", "cpu", 40), {}).ok());
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "web"), 8);
  EXPECT_EQ(drive.Value("a"), ToString(Pool(drive, "web")));
  clock_.Advance(std::chrono::minutes(5));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "web"), 8) << "it is in its pool still";
}

}  // namespace
}  // namespace qrm::cpu::grow_test
