// CPUs without the kernel's load balancing: in no pool, and exclusive only by wish.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::isolated_test {
namespace {

using test::Drive;
using test::Request;
using testing::HasSubstr;

constexpr char kIsolated[] = R"(
isolated-cpus: "8-15,40-47"
rules:
  - {select: {role: dpdk}, grant: dataplane}
  - {select: {role: strict}, grant: strict}
  - {select: {role: usual}, grant: usual}
grants:
  dataplane: {whole-cores: true, isolated: prefer, plus: helpers, share-numa-with: ["*"]}
  strict: {isolated: require, share-numa-with: ["*"]}
  usual: {numa: any, share-numa-with: ["*"]}
pools: {helpers: {size: {min: 2, max: 4}}}
)";

CpuSet Isolated() {
  return CpuSet::Range(8, 15) | CpuSet::Range(40, 47);
}

/// TwoNodes, booted with isolcpus.
Machine BootedWithIsolated() {
  MachineParts parts = TwoNodes().parts();
  parts.isolated = Isolated();
  return Machine(std::move(parts));
}

using IsolatedTest = ElasticPlugins;

TEST_F(IsolatedTest, AreInNoPool) {
  Drive drive = Start(kIsolated);
  EXPECT_FALSE(Pool(drive, "default").Intersects(Isolated()));
  EXPECT_FALSE(Pool(drive, "helpers").Intersects(Isolated()));
  EXPECT_EQ(Size(drive, "default"), 64 - 16 - 2);
  EXPECT_THAT(MessageOf(drive.plugin().SetPools({{"default", CpuSet::Range(0, 63)}})),
              HasSubstr("it has the CPUs that other pools leave"));
}

TEST_F(IsolatedTest, CannotBePutIntoAPool) {
  Drive drive = Start("{isolated-cpus: 8-9, pools: {a: {cpus: 0-1}}}");
  EXPECT_THAT(MessageOf(drive.plugin().SetPools({{"a", {1, 8}}})), HasSubstr("they are isolated"));
}

TEST_F(IsolatedTest, AreOfTheBootParameterUnlessNamed) {
  Drive drive(MakeElastic("{}", BootedWithIsolated()));
  EXPECT_EQ(Pool(drive, "default"), TwoNodes().cpu_set() - Isolated());
  Drive none(MakeElastic("isolated-cpus: none", BootedWithIsolated()));
  EXPECT_EQ(Pool(none, "default"), TwoNodes().cpu_set());
  Drive like_kubelet(MakeElastic("static: true", BootedWithIsolated()));
  EXPECT_EQ(Pool(like_kubelet, "default"), TwoNodes().cpu_set());
}

TEST_F(IsolatedTest, OfTheBootParameterGoWhereTheConfigurationPutsThem) {
  Drive drive(
      MakeElastic("{reserved-cpus: \"8\", pools: {a: {cpus: \"9-10\"}}}", BootedWithIsolated()));
  EXPECT_EQ(Pool(drive, "a"), (CpuSet{9, 10}));
  EXPECT_EQ(Pool(drive, "default"), TwoNodes().cpu_set() - Isolated());
}

TEST_F(IsolatedTest, AreGivenByWishOnly) {
  Drive drive = Start(kIsolated);
  Admit(drive, "a", "dpdk", 4.5);
  Admit(drive, "b", "strict", 2);
  Admit(drive, "c", "usual", 4);
  EXPECT_EQ(drive.Value("a"), "8-9,40-41");
  EXPECT_TRUE(CpuSet::Parse(drive.Value("b"))->IsSubsetOf(Isolated()));
  EXPECT_FALSE(CpuSet::Parse(drive.Value("c"))->Intersects(Isolated()));
}

TEST_F(IsolatedTest, PreferenceTakesOthersWhereTheyAreTooFew) {
  Drive drive = Start(kIsolated);
  Admit(drive, "a", "dpdk", 14);
  Admit(drive, "b", "dpdk", 4);
  EXPECT_TRUE(CpuSet::Parse(drive.Value("a"))->IsSubsetOf(Isolated()));
  EXPECT_FALSE(CpuSet::Parse(drive.Value("b"))->Intersects(Isolated()));
}

TEST_F(IsolatedTest, RequirementRejectsWhereTheyAreTooFew) {
  Drive drive = Start(kIsolated);
  EXPECT_THAT(MessageOf(drive.plugin().Hints(Request("a", "strict", "cpu", 17)).status()),
              HasSubstr("have 17 CPUs"));
  Admit(drive, "b", "strict", 16);
}

TEST_F(IsolatedTest, HintsPreferTheNodesThatHaveThem) {
  Drive drive = Start(kIsolated);
  const StatusOr<HintList> hints = drive.plugin().Hints(Request("a", "dpdk", "cpu", 4));
  ASSERT_TRUE(hints.ok()) << hints.status();
  ASSERT_EQ(hints->hints().size(), 2U);
  EXPECT_EQ(hints->hints()[0], (TopologyHint{.nodes = {0}, .preferred = true}));
  EXPECT_EQ(hints->hints()[1], (TopologyHint{.nodes = {1}, .preferred = false}));
}

TEST_F(IsolatedTest, DoNotMoveAtARestart) {
  Drive before = Start(kIsolated);
  Admit(before, "a", "dpdk", 4.5);
  Admit(before, "b", "strict", 2);
  const std::string was = before.plugin().ExportState(before.grants());
  Drive after = Restart(kIsolated, before);
  after.Reconcile();
  EXPECT_EQ(after.plugin().ExportState(after.grants()), was);
}

}  // namespace
}  // namespace qrm::cpu::isolated_test
