// Elastic pools in the plugin: they follow their containers, and nothing else moves.
#include "plugins/cpu/elastic.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu::elastic_test {
namespace {

using std::chrono::seconds;
using test::Drive;
using test::Request;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Optional;

class ElasticTest : public ElasticPlugins {};

/// The first worked example, except what the offline pool borrows.
constexpr char kOnlineOffline[] = R"(
reserved-cpus: "0,32"
rules: [{select: {role: online}, pool: online}, {select: {role: offline}, pool: offline}]
pools:
  online:  {size: {min: 8, max: 48}, priority: 1}
  offline: {size: {min: 2}}
  default: {size: {min: 2}}
)";

TEST_F(ElasticTest, FollowsRequestsUpToTheMaximumAndByPriority) {
  Drive drive = Start(kOnlineOffline);
  EXPECT_EQ(Size(drive, "online"), 8);
  Admit(drive, "on", "online", 20);
  Admit(drive, "off", "offline", 30);
  EXPECT_EQ(Size(drive, "online"), 20);
  EXPECT_EQ(Size(drive, "offline"), 30);
  EXPECT_EQ(Size(drive, "default"), 2);

  Admit(drive, "more", "online", 40);
  EXPECT_EQ(Size(drive, "online"), 48);
  EXPECT_EQ(Size(drive, "offline"), 12);
  EXPECT_EQ(Size(drive, "default"), 2);
}

TEST_F(ElasticTest, WithoutOvercommitAPoolRejectsRequestsBeyondItsCpus) {
  Drive drive = Start(R"(
rules: [{select: {role: online}, pool: online}]
pools:
  online:  {size: {min: 4, max: 10, overcommit: refuse}}
  default: {size: {min: 2}}
)");
  Admit(drive, "first", "online", 6.5);
  EXPECT_EQ(MessageOf(drive.Admit(Request("second", "online", "cpu", 4)).status()),
            "cannot place container c0 of pod default/second: the containers of pool online would "
            "request 10.5 CPUs, but it can have only 10; request fewer, delete a pod, or allow the "
            "pool more");
  Admit(drive, "third", "online", 3.5);
  EXPECT_FALSE(drive.Admit(Request("first", "online", "cpu", 7)).ok()) << "nor to grow";
  drive.RemovePod("third");
  Admit(drive, "first", "online", 7);
}

TEST_F(ElasticTest, CountsTheLargerOfAPodsInitContainersAndTheOthers) {
  Drive drive = Start(kOnlineOffline);
  const auto admit = [&](const std::string& container, ContainerType type, double cpus) {
    ContainerRequest request = Request("pod", "online", "cpu", cpus);
    request.key.container = container;
    request.type = type;
    ASSERT_TRUE(drive.Admit(request).ok());
  };
  admit("init", ContainerType::kInit, 20);
  admit("main", ContainerType::kMain, 16);
  EXPECT_EQ(Size(drive, "online"), 20);
  admit("sidecar", ContainerType::kSidecar, 8);
  EXPECT_EQ(Size(drive, "online"), 24);
  Admit(drive, "other", "online", 2);
  EXPECT_EQ(Size(drive, "online"), 26);
}

// The default pool has the reserved CPUs, and needs none of the others.
TEST_F(ElasticTest, KeepsItsLastCpuBesideOwnersOfTheStaticPolicy) {
  Drive drive = Start(R"(
reserved-cpus: "0,32"
static: true
pools: {burst: {roles: [burst], size: {max: 6}}}
)");
  Admit(drive, "guest", "burst", 1);
  ContainerRequest owner = Request("owner", "", "cpu", 61);
  owner.native_qos_class = "Guaranteed";
  ASSERT_TRUE(drive.Admit(owner).ok());
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "burst"), 1);
}

TEST_F(ElasticTest, ReportsTheOthersOfThePoolAtTheNextReconcile) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "a", "online", 10);
  const std::string before = drive.Value("a");
  Admit(drive, "b", "online", 10);
  EXPECT_EQ(drive.Value("a"), before);
  drive.Reconcile();
  EXPECT_EQ(drive.Value("a"), drive.Value("b"));
  EXPECT_EQ(CpuSet::Parse(drive.Value("a"))->Count(), 20);
}

TEST_F(ElasticTest, ShrinksOnlyAfterItsDelayWithoutNeed) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "a", "online", 20);
  drive.RemovePod("a");
  drive.Reconcile();
  clock_.Advance(seconds(29));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "online"), 20);
  clock_.Advance(seconds(1));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "online"), 8);
}

TEST_F(ElasticTest, NeedInBetweenStartsTheDelayAgain) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "a", "online", 20);
  drive.RemovePod("a");
  drive.Reconcile();
  clock_.Advance(seconds(29));
  Admit(drive, "b", "online", 20);
  drive.Reconcile();
  drive.RemovePod("b");
  drive.Reconcile();
  clock_.Advance(seconds(29));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "online"), 20);
}

TEST_F(ElasticTest, ShrinksByItsStepASecondHoweverOftenItIsPlanned) {
  Drive drive = Start("pools: {web: {size: {min: 2, shrink-after: 10s, step: 4}, roles: [web]}}");
  Admit(drive, "a", "web", 12);
  drive.RemovePod("a");
  drive.Reconcile();
  clock_.Advance(seconds(10));
  for (const int want : {8, 4, 2, 2}) {
    drive.Reconcile();
    drive.Reconcile();
    EXPECT_EQ(Size(drive, "web"), want);
    clock_.Advance(seconds(1));
  }
}

TEST_F(ElasticTest, KeepsItsCpusWhenItGrowsAndASubsetWhenItShrinks) {
  Drive drive = Start(kOnlineOffline);
  Admit(drive, "a", "online", 11);
  const CpuSet first = Pool(drive, "online");
  Admit(drive, "b", "online", 9);
  const CpuSet second = Pool(drive, "online");
  EXPECT_TRUE(first.IsSubsetOf(second));
  drive.RemovePod("b");
  drive.Reconcile();
  clock_.Advance(seconds(30));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "online"), 11);
  EXPECT_TRUE(Pool(drive, "online").IsSubsetOf(second));
}

TEST_F(ElasticTest, StaysOnOneNodeAndOnWholeCoresWhileItCan) {
  Drive drive = Start("pools: {web: {size: {min: 2}, roles: [web]}}");
  EXPECT_EQ(ToString(Pool(drive, "web")), "0,32");
  Admit(drive, "a", "web", 6);
  EXPECT_EQ(ToString(Pool(drive, "web")), "0-2,32-34");
}

TEST_F(ElasticTest, KeepsMinimumsFromNewContainersWhereCpusAreGone) {
  const test::TempDir root;
  const std::filesystem::path folder = root / "sys/devices/system/cpu";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "online") << "0-3\n";
  MachineParts parts;
  parts.nodes = {{.id = 0, .package = 0}};
  for (int cpu = 0; cpu < 4; ++cpu) {
    parts.cpus.push_back({.id = cpu, .core = cpu, .l3 = 0, .node = 0, .package = 0});
  }
  parts.online = folder / "online";
  Drive drive(
      MakeElastic("pools: {a: {size: {min: 2}, roles: [a]}, b: {size: {max: 2}, roles: [b]}, "
                  "default: {size: {min: 1}}}",
                  Machine(std::move(parts))));
  Admit(drive, "a", "a", 1);
  std::ofstream(folder / "online") << "0-1\n";
  EXPECT_THAT(MessageOf(drive.Admit(test::Request("b", "b", "cpu", 1)).status()),
              HasSubstr("none is left for it beside the 3 that pools must keep"));
  Admit(drive, "a2", "a", 1);
}

TEST_F(ElasticTest, LeavesTheDefaultPoolOneCpu) {
  Drive drive = Start("pools: {web: {size: {min: 2}, roles: [web]}}");
  Admit(drive, "a", "web", 100);
  EXPECT_EQ(Size(drive, "web"), 63);
  EXPECT_EQ(Size(drive, "default"), 1);
}

TEST_F(ElasticTest, PoolOfOneSizeHasItWhateverIsAsked) {
  Drive drive = Start("pools: {web: {size: {fixed: 6}, roles: [web]}}");
  Admit(drive, "a", "web", 20);
  EXPECT_EQ(Size(drive, "web"), 6);
}

TEST_F(ElasticTest, GrowsByWholeCores) {
  Drive drive = Start("pools: {web: {size: {round: core, ratio: 150%}, roles: [web]}}");
  Admit(drive, "a", "web", 3);
  EXPECT_EQ(Size(drive, "web"), 6);
}

TEST_F(ElasticTest, DoesNotMoveAtARestart) {
  Drive before = Start(kOnlineOffline);
  Admit(before, "a", "online", 20);
  Admit(before, "b", "offline", 9);
  before.RemovePod("a");
  const std::string was = before.plugin().ExportState(before.grants());
  Drive after = Restart(kOnlineOffline, before);
  after.Reconcile();
  EXPECT_EQ(after.plugin().ExportState(after.grants()), was);
  clock_.Advance(seconds(30));
  after.Reconcile();
  EXPECT_EQ(Size(after, "online"), 8);
}

TEST_F(ElasticTest, KeepsItsCpusWhenItsBoundsChangeAndAnotherPoolIsNew) {
  Drive before = Start(kOnlineOffline);
  Admit(before, "a", "online", 20);
  const CpuSet was = Pool(before, "online");
  Drive after = Restart(R"(
reserved-cpus: "0,32"
rules: [{select: {role: online}, pool: online}]
pools: {online: {size: {min: 4, max: 60}}, alpha: {size: {min: 10}, priority: 2}}
)",
                        before);
  EXPECT_EQ(Pool(after, "online"), was);
  EXPECT_EQ(Size(after, "alpha"), 10);
}

TEST_F(ElasticTest, LeavesOnlyWhatAPoolOfOneSizeHasNow) {
  Drive before = Start(kOnlineOffline);
  Admit(before, "a", "online", 20);
  const CpuSet was = Pool(before, "online");
  const CpuSet fixed = {was.First(), was.Last()};
  Drive after =
      Restart(kOnlineOffline + ("  fixed: {cpus: \"" + ToString(fixed) + "\"}\n"), before);
  EXPECT_EQ(Pool(after, "fixed"), fixed);
  EXPECT_TRUE((was - fixed).IsSubsetOf(Pool(after, "online")));
  EXPECT_EQ(Size(after, "online"), 20);
}

TEST_F(ElasticTest, YieldsToAPoolThatIsSet) {
  Drive drive =
      Start("pools: {web: {size: {min: 4}, roles: [web]}, other: {cpus: 60-63, roles: [other]}}");
  ASSERT_TRUE(drive.plugin().SetPools({{"other", *CpuSet::Parse("0-3")}}).ok());
  EXPECT_EQ(Size(drive, "web"), 4);
  EXPECT_FALSE(Pool(drive, "web").Intersects(*CpuSet::Parse("0-3")));
}

TEST_F(ElasticTest, CannotBeSetByHand) {
  Drive drive = Start(kOnlineOffline);
  for (const char* pool : {"online", "default"}) {
    EXPECT_THAT(MessageOf(drive.plugin().SetPools({{pool, {1, 2}}})),
                HasSubstr("it is elastic, and its containers set its size"));
  }
}

TEST_F(ElasticTest, OwnersGetIdleCpusAndNoPoolsCpus) {
  Drive drive = Start(kOnlineOffline + std::string("roles: {db: {numa: any}}\n"));
  Admit(drive, "web", "online", 40);
  const auto own = drive.Admit(Request("db", "db", "cpu", 10));
  ASSERT_TRUE(own.ok()) << own.status();
  const CpuSet cpus = *CpuSet::Parse(own->value);
  for (const sdk::Pool& pool : drive.plugin().Pools()) {
    EXPECT_FALSE(pool.cpus.Intersects(cpus)) << pool.name;
  }
  EXPECT_FALSE(drive.Admit(Request("db2", "db", "cpu", 9)).ok()) << "8 are idle";
}

TEST_F(ElasticTest, WhatAPoolHasBeyondItsRequestsYieldsToOwnersAtOnce) {
  Drive drive = Start(
      "pools: {batch: {size: {min: 2, per: limit}, roles: [batch]}, default: {size: {min: 2}}}\n"
      "roles: {db: {numa: any, share-numa-with: [\"*\"]},\n"
      "        near: {numa: one, share-numa-with: [\"*\"]}}\n");
  ContainerRequest job = Request("job", "batch", "cpu", 4);
  job.limit = 50;
  ASSERT_TRUE(drive.Admit(job).ok());
  ASSERT_EQ(Size(drive, "batch"), 50);

  const auto own = drive.Admit(Request("db", "db", "cpu", 20));  // 12 are idle
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(Size(drive, "batch"), 42);
  EXPECT_FALSE(Pool(drive, "batch").Intersects(*CpuSet::Parse(own->value)));
  drive.Reconcile();
  EXPECT_EQ(CpuSet::Parse(drive.Value("job"))->Count(), 42);

  // Nothing is idle, and the hint is one node that the pool is on, too.
  const auto near = drive.Admit(Request("near", "near", "cpu", 6));
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_THAT(near->hints, Optional(ElementsAre(Field(&TopologyHint::preferred, true))));
  EXPECT_EQ(Size(drive, "batch"), 36);

  EXPECT_FALSE(drive.Admit(Request("db2", "db", "cpu", 33)).ok()) << "4 are requested";
  EXPECT_EQ(Size(drive, "batch"), 36);
  EXPECT_TRUE(drive.Admit(Request("db2", "db", "cpu", 32)).ok());
  EXPECT_EQ(Size(drive, "batch"), 4);
}

TEST_F(ElasticTest, RequestsAreServedBeforeAnyPoolGetsMore) {
  Drive drive = Start(
      "pools: {batch: {size: {per: limit}, priority: 1, roles: [batch]},\n"
      "        web: {size: {}, roles: [web]}, default: {size: {min: 2}}}\n");
  ContainerRequest job = Request("job", "batch", "cpu", 4);
  job.limit = 60;
  ASSERT_TRUE(drive.Admit(job).ok());
  EXPECT_EQ(Size(drive, "batch"), 60);
  Admit(drive, "web", "web", 50);
  EXPECT_EQ(Size(drive, "web"), 50);
  EXPECT_EQ(Size(drive, "batch"), 12);
}

TEST_F(ElasticTest, GrowsIntoWhatARemovedOwnerLeaves) {
  Drive drive = Start(kOnlineOffline + std::string("roles: {db: {numa: any}}\n"));
  Admit(drive, "db", "db", 40);
  Admit(drive, "web", "online", 30);
  EXPECT_EQ(Size(drive, "online"), 18);
  drive.RemovePod("db");
  EXPECT_EQ(Size(drive, "online"), 30);
}

TEST_F(ElasticTest, OwnersGetCpusThatAPoolsContainersStillUseOnlyAsTheLastResort) {
  Drive drive = Start(
      "pools: {web: {size: {max: 50}, roles: [web]}, default: {size: {fixed: 4}}}\n"
      "roles: {db: {numa: any, share-numa-with: [\"*\"]}}");
  Admit(drive, "web", "web", 50);
  Admit(drive, "rest", "web", 1);
  const CpuSet had = Pool(drive, "web");
  drive.RemovePod("web");
  drive.Reconcile();
  clock_.Advance(seconds(30));
  drive.Reconcile();
  ASSERT_EQ(Size(drive, "web"), 1);
  // The runtime gets the update only now.
  for (const char* pod : {"db1", "db2"}) {
    ASSERT_TRUE(drive.Admit(Request(pod, "db", "cpu", 5)).ok());
    EXPECT_FALSE(had.Intersects(*CpuSet::Parse(drive.Value(pod)))) << pod;
  }
  ASSERT_TRUE(drive.Admit(Request("db3", "db", "cpu", 5)).ok());
  EXPECT_TRUE(had.Intersects(*CpuSet::Parse(drive.Value("db3"))));
}

TEST_F(ElasticTest, RemembersWhatAPoolGaveUpThroughARestart) {
  constexpr const char* kText =
      "pools: {web: {size: {max: 50}, roles: [web]}, default: {size: {fixed: 4}}}\n"
      "roles: {db: {numa: any}}";
  Drive before = Start(kText);
  Admit(before, "web", "web", 50);
  Admit(before, "rest", "web", 1);
  const CpuSet had = Pool(before, "web");
  before.RemovePod("web");
  before.Reconcile();
  clock_.Advance(seconds(30));
  before.Reconcile();
  Drive drive(MakeElastic(kText, TwoNodes()), before);
  ASSERT_TRUE(drive.Admit(Request("db", "db", "cpu", 10)).ok());
  EXPECT_FALSE(had.Intersects(*CpuSet::Parse(drive.Value("db"))));
}

TEST_F(ElasticTest, OwnersLeaveWhatASmallerBoundTakesAtARestartWhileOtherCpusAreIdle) {
  constexpr const char* kText =
      "pools: {{web: {{size: {{max: {}}}, roles: [web]}}, default: {{size: {{fixed: 4}}}}}}\n"
      "roles: {{db: {{numa: any}}}}";
  Drive before = Start(fmt::format(kText, 50));
  Admit(before, "web", "web", 60);
  const CpuSet had = Pool(before, "web");
  Drive drive(MakeElastic(fmt::format(kText, 30), TwoNodes()), before);
  ASSERT_EQ(Size(drive, "web"), 30);
  ASSERT_TRUE(drive.Admit(Request("db", "db", "cpu", 10)).ok());
  EXPECT_FALSE(had.Intersects(*CpuSet::Parse(drive.Value("db"))));
}

TEST_F(ElasticTest, SizesDoNotDependOnTheOrderOfArrival) {
  Drive one = Start(kOnlineOffline);
  Drive other = Start(kOnlineOffline);
  Admit(one, "a", "online", 30);
  Admit(one, "b", "offline", 50);
  Admit(one, "c", "", 20);
  Admit(other, "c", "", 20);
  Admit(other, "b", "offline", 50);
  Admit(other, "a", "online", 30);
  for (const char* pool : {"online", "offline", "default"}) {
    EXPECT_EQ(Size(one, pool), Size(other, pool)) << pool;
  }
}

TEST_F(ElasticTest, ARejectedContainerChangesNothing) {
  Drive drive = Start(
      "pools: {web: {size: {min: 63}, priority: 1, roles: [web]},\n"
      "        batch: {size: {}, roles: [batch]}}");
  Admit(drive, "web", "web", 63);
  const std::string was = drive.plugin().ExportState(drive.grants());
  EXPECT_THAT(MessageOf(drive.Admit(Request("b", "batch", "cpu", 1)).status()),
              HasSubstr("pool batch has no CPU, and none is left for it"));
  EXPECT_EQ(drive.plugin().ExportState(drive.grants()), was);
}

TEST_F(ElasticTest, SurvivesTheLossOfItsCpus) {
  Drive before = Start(kOnlineOffline);
  Admit(before, "a", "online", 40);
  MachineParts parts = TwoNodes().parts();
  std::erase_if(parts.cpus, [](const Cpu& cpu) { return cpu.node == 1; });
  parts.nodes.resize(1);
  Drive after(MakeElastic(kOnlineOffline, Machine(std::move(parts))), before);
  after.Reconcile();
  EXPECT_EQ(Size(after, "online"), 26) << "32 less 2 reserved, and the minimums of the others";
  EXPECT_EQ(CpuSet::Parse(after.Value("a"))->Count(), 26);
}

TEST(ElasticFitTest, RejectsMinimumsThatTheMachineDoesNotHave) {
  const auto plugin =
      MakeCpuPlugin(Config("pools: {a: {size: {min: 40}}, b: {size: {min: 24}}}"), TwoNodes());
  EXPECT_THAT(MessageOf(plugin.status()), HasSubstr("the 64 CPUs of their minimums: only 63 are"));
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string want;
};
class RejectedPoolTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RejectedPoolTest, NamesTheMistake) {
  const auto section = config::Section::Parse(GetParam().text, "cpu.yaml");
  const Status status = ParseCpuConfig(*section).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr(GetParam().want));
}

const RefusedCase kRefused[] = {
    {"CpusAndSize", "pools: {a: {cpus: 1, size: {min: 1}}}", "keep one of the two"},
    {"DefaultWithCpus", "pools: {default: {cpus: 1, size: {min: 1}}}", "keep one of the two"},
    {"ReservedWithSize", "pools: {reserved: {size: {min: 1}}}", "always exists"},
    {"FixedAndMin", "pools: {a: {size: {fixed: 1, min: 1}}}", "pools.a.size.min"},
    {"FixedNone", "pools: {a: {size: {fixed: 0}}}", "leaves its containers no CPU"},
    {"MaxBelowMin", "pools: {a: {size: {min: 4, max: 2}}}", "max is 2, but min is 4"},
    {"MaxOfNone", "pools: {a: {size: {max: 0}}}", "at least 1"},
    {"TooMany", "pools: {a: {size: {min: 100000}}}", "more than any machine has"},
    {"PerUse", "pools: {a: {size: {per: use}}}", "per is 'use'"},
    {"BadRatio", "pools: {a: {size: {ratio: much}}}", "which is not a percentage"},
    {"NoRatio", "pools: {a: {size: {ratio: 0%}}}", "which is not a percentage"},
    {"BadRound", "pools: {a: {size: {round: node}}}", "cpu or core or l3"},
    {"BadDelay", "pools: {a: {size: {shrink-after: soon}}}", "which is not a duration"},
    {"NoWeight", "pools: {a: {size: {}, weight: 0}}", "write 1 or more"},
    {"PriorityOfPoolOfOneSize", "pools: {a: {cpus: 1, priority: 1}}", "pools with a size only"},
};
INSTANTIATE_TEST_SUITE_P(Texts, RejectedPoolTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::cpu::elastic_test
