// Where elastic pools are: kinds of cores, threads, NUMA nodes, caches, and what is rejected.
#include "plugins/cpu/place.h"

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/driven_node.h"
#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::place_test {
namespace {

using test::Drive;
using test::Request;
using testing::AllOf;
using testing::HasSubstr;

/// 8 performance cores of two threads, CPUs 0-15, and 8 efficient ones, 16-23; one node.
Machine Hybrid() {
  MachineParts parts;
  for (int cpu = 0; cpu < 24; ++cpu) {
    const bool fast = cpu < 16;
    parts.cpus.push_back(
        {.id = cpu, .core = fast ? cpu - cpu % 2 : cpu, .core_kind = fast ? 1 : 0});
  }
  parts.nodes = {{.id = 0}};
  return Machine(std::move(parts));
}

/// 8 L3 caches of 8 CPUs, each of four cores of two threads; one node.
Machine Chiplets() {
  MachineParts parts;
  for (int cpu = 0; cpu < 64; ++cpu) {
    parts.cpus.push_back({.id = cpu, .core = cpu - cpu % 2, .l3 = cpu - cpu % 8});
  }
  parts.nodes = {{.id = 0}};
  return Machine(std::move(parts));
}

class PlaceTest : public ElasticPlugins {
 protected:
  Drive StartOn(const Machine& machine, const std::string& text) {
    return Drive(MakeElastic(text, machine));
  }
};

TEST_F(PlaceTest, TakesCoresOfItsKindBeforeOthers) {
  Drive drive = StartOn(Hybrid(), R"(
pools:
  slow: {size: {min: 2}, roles: [slow], place: {core: efficient}}
  fast: {size: {min: 2}, roles: [fast], place: {core: performance}}
)");
  EXPECT_EQ(ToString(Pool(drive, "slow")), "16-17");
  EXPECT_EQ(ToString(Pool(drive, "fast")), "0-1");
  Admit(drive, "a", "slow", 10);
  EXPECT_TRUE(CpuSet::Range(16, 23).IsSubsetOf(Pool(drive, "slow")));
  EXPECT_EQ(Size(drive, "slow"), 10);
}

TEST_F(PlaceTest, StaysOnCoresOfItsKindWhereRequired) {
  Drive drive = StartOn(
      Hybrid(),
      "pools: {slow: {size: {min: 2}, roles: [slow], place: {core: efficient, require: core}}}");
  Admit(drive, "a", "slow", 7);
  const auto refused = drive.Admit(Request("b", "slow", "cpu", 2));
  EXPECT_THAT(MessageOf(refused.status()),
              AllOf(HasSubstr("pool slow wants 9 CPUs of efficient cores"),
                    HasSubstr("node 0: 8 of 8 left")));
  EXPECT_EQ(Size(drive, "slow"), 7);
}

TEST_F(PlaceTest, OneKindOfCoresIsEveryKind) {
  Drive drive = Start(
      "pools: {web: {size: {min: 2}, roles: [web], place: {core: efficient, require: [core]}}}");
  Admit(drive, "a", "web", 40);
  EXPECT_EQ(Size(drive, "web"), 40);
}

TEST_F(PlaceTest, OwnsWholeCoresAndRunsOnOneThreadOfEach) {
  Drive drive =
      Start("pools: {web: {size: {min: 2, max: 8}, roles: [web], place: {threads: one-per-core}}}");
  EXPECT_EQ(ToString(Pool(drive, "web")), "0-1,32-33");
  Admit(drive, "a", "web", 3);
  EXPECT_EQ(ToString(Pool(drive, "web")), "0-2,32-34");
  EXPECT_EQ(drive.Value("a"), "0-2");
  Admit(drive, "b", "web", 20);
  EXPECT_EQ(drive.Value("b"), "0-7");
}

TEST_F(PlaceTest, TakesNoPartOfACoreWhereCoresAreWhole) {
  Drive drive = Start(R"(
pools:
  odd: {cpus: "0,33"}
  web: {size: {min: 3}, roles: [web], place: {threads: whole-cores}}
)");
  EXPECT_EQ(ToString(Pool(drive, "web")), "2-3,34-35");
}

TEST_F(PlaceTest, SpreadsOverNodesWhereAskedTo) {
  Drive drive = Start("pools: {web: {size: {min: 2, step: 2}, roles: [web], place: {numa: even}}}");
  Admit(drive, "a", "web", 8);
  EXPECT_EQ(ToString(Pool(drive, "web")), "0-1,16-17,32-33,48-49");
  drive.RemovePod("a");
  drive.Reconcile();
  clock_.Advance(std::chrono::seconds(30));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "web"), 6);
  EXPECT_EQ((Pool(drive, "web") & CpuSet::Range(16, 31)).Count() +
                (Pool(drive, "web") & CpuSet::Range(48, 63)).Count(),
            3);
}

TEST_F(PlaceTest, TakesWholeCachesAndStaysOutOfCachesOfContainersThatItAvoids) {
  Drive drive = StartOn(Chiplets(), R"(
rules: [{select: {label: {load: avx}}, pool: avx}, {select: {label: {slo: latency}}, pool: rt}]
pools:
  rt:  {size: {min: 8, round: l3}, instances: {by: "label:shard"}, place: {align-l3: true, avoid: {share: l3, with: [avx]}}}
  avx: {size: {min: 4, max: 32}, place: {threads: whole-cores}}
)");
  const auto admit = [&](const std::string& pod, StringMap labels, double cpus) {
    ContainerRequest request = Request(pod, "", "cpu", cpus);
    request.labels = std::move(labels);
    const auto admitted = drive.Admit(request);
    ASSERT_TRUE(admitted.ok()) << admitted.status();
  };
  admit("a", {{"slo", "latency"}, {"shard", "a"}}, 10);
  admit("b", {{"slo", "latency"}, {"shard", "b"}}, 6);
  admit("c", {{"load", "avx"}}, 12);
  EXPECT_EQ(ToString(Pool(drive, "rt/a")), "8-23");
  EXPECT_EQ(ToString(Pool(drive, "rt/b")), "24-31");
  EXPECT_EQ(ToString(Pool(drive, "avx")), "0-7,32-35");
}

TEST_F(PlaceTest, AvoidsContainersThatAvoidIt) {
  Drive drive = StartOn(Chiplets(), R"(
pools:
  a: {size: {min: 4}, place: {avoid: {share: l3, with: b}}}
  b: {size: {min: 4}}
)");
  EXPECT_EQ(ToString(Pool(drive, "a")), "0-3");
  EXPECT_EQ(ToString(Pool(drive, "b")), "8-11");
}

TEST_F(PlaceTest, MayShareCachesWithContainersThatItAvoidsAsTheLastResort) {
  Drive drive = StartOn(Chiplets(), R"(
pools:
  a: {size: {min: 60}, place: {avoid: {share: l3, with: b}}}
  b: {size: {min: 3}}
)");
  EXPECT_EQ(Size(drive, "a"), 60);
  EXPECT_EQ(Size(drive, "b"), 3);
}

TEST_F(PlaceTest, TheHigherPriorityChoosesItsNodeFirst) {
  Drive drive = Start(R"(
pools:
  a: {size: {min: 20}, place: {numa: one, require: numa}}
  b: {size: {min: 20}, priority: 1, place: {numa: one, require: numa}}
)");
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "b"))), "0");
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "a"))), "1");
}

TEST_F(PlaceTest, TakesAWholeCacheBeforeARestThatFits) {
  Drive drive = StartOn(Chiplets(), R"(
pools:
  other: {cpus: 0-3}
  a: {size: {min: 4}, place: {align-l3: true}}
)");
  EXPECT_EQ(ToString(Pool(drive, "a")), "8-11");
}

TEST_F(PlaceTest, LeavesTheCachesOfContainersThatItAvoidsFirst) {
  Drive drive = StartOn(Chiplets(), R"(
pools:
  other: {cpus: 0-5}
  a: {size: {min: 4, step: 5}, roles: [a], place: {avoid: {share: l3, with: b}}}
  b: {size: {min: 3}}
  default: {size: {min: 0}}
)");
  Admit(drive, "a", "a", 55);
  const CpuSet beside = Chiplets().cpu_set() - CpuSet::Range(0, 5) - Pool(drive, "b");
  ASSERT_EQ(Pool(drive, "a"), beside) << "all that is left, in b's cache as well";
  drive.RemovePod("a");
  drive.Reconcile();
  clock_.Advance(std::chrono::seconds(30));
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "a"), 50);
  EXPECT_TRUE(CpuSet::Range(6, 7).IsSubsetOf(Pool(drive, "a"))) << "of the cache of another pool";
}

/// Four cores of two threads on one node. A container with exclusive CPUs has one thread of each of
/// the first two cores.
class PartsTest : public PlaceTest {
 protected:
  PartsTest() {
    MachineParts parts;
    for (int cpu = 0; cpu < 8; ++cpu) {
      parts.cpus.push_back({.id = cpu, .core = cpu - cpu % 2});
    }
    parts.nodes = {{.id = 0}};
    drive_ = std::make_unique<Drive>(StartOn(Machine(std::move(parts)), R"(
roles: {own: {numa: any, share-numa-with: ["*"]}}
pools:
  any: {size: {max: 2}, roles: [any]}
  one: {size: {max: 2}, roles: [one], place: {threads: whole-cores}}
  two: {size: {max: 2}, roles: [two], place: {threads: whole-cores, numa: one, require: numa}}
)"));
    for (const int cpu : {0, 2}) {
      ContainerRequest request = Request("own" + std::to_string(cpu), "own", "cpu", 1);
      request.runs_on = {cpu};
      EXPECT_EQ(drive_->Admit(request)->value, std::to_string(cpu));
    }
  }

  std::unique_ptr<Drive> drive_;
};

TEST_F(PartsTest, AContainerThatTakesPartsOfCoresFreesAWholeCore) {
  Admit(*drive_, "a", "any", 2);
  EXPECT_EQ(ToString(Pool(*drive_, "any")), "4-5");
  Admit(*drive_, "b", "one", 2);
  EXPECT_EQ(ToString(Pool(*drive_, "one")), "6-7");
  Admit(*drive_, "c", "two", 2);  // the default pool keeps one of what is left
  EXPECT_EQ(ToString(Pool(*drive_, "two")), "4-5");
  EXPECT_EQ(ToString(Pool(*drive_, "any")), "1");
}

TEST_F(PartsTest, WholeCoresAreNotDividedAmongRequestsForWholeCores) {
  Admit(*drive_, "b", "one", 2);
  Admit(*drive_, "c", "two", 2);
  EXPECT_EQ(Size(*drive_, "one") + Size(*drive_, "two"), 4);
  EXPECT_FALSE(Pool(*drive_, "one").Intersects(CpuSet::Range(0, 3)));
}

TEST_F(PlaceTest, SpreadTakesOneThreadOfEachCoreFirstAndLeavesTheOthersToOthers) {
  Drive drive = StartOn(Chiplets(), R"(
pools:
  wide: {size: {shrink-after: 0s}, roles: [wide], place: {threads: spread}}
  rest: {size: {}, roles: [rest]}
  default: {size: {min: 56}}
)");
  Admit(drive, "a", "wide", 3);
  EXPECT_EQ(ToString(Pool(drive, "wide")), "56,58,60");
  Admit(drive, "b", "rest", 1);
  EXPECT_EQ(ToString(Pool(drive, "rest")), "57") << "it shares a core with the other pool";
  Admit(drive, "c", "wide", 2);
  EXPECT_EQ(ToString(Pool(drive, "wide")), "56,58-60,62");
  drive.RemovePod("c");
  drive.Reconcile();
  EXPECT_EQ(ToString(Pool(drive, "wide")), "56,58,60") << "second threads go first";
}

TEST_F(PlaceTest, CpusNearADeviceAreTakenLastByPoolsThatAreNotNearIt) {
  Drive drive = StartOn(TwoNodes(), R"(
devices: {eth0: 0}
pools:
  near: {size: {}, roles: [near], place: {near: eth0, keep-near: true}}
  other: {size: {}, roles: [other]}
  default: {size: {min: 2}}
)");
  Admit(drive, "a", "other", 8);
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "other"))), "1");
  Admit(drive, "b", "near", 30);
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "near"))), "0");
  Admit(drive, "c", "other", 24);
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "other"))), "0-1") << "if no others are free";
}

struct Mistake {
  std::string name;
  std::string pool;
  std::string sentence;
};

class PlaceMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(PlaceMistakeTest, IsRejectedWithASentence) {
  const auto section = config::Section::Parse(
      "pools: {other: {size: {min: 1}}, p: {" + GetParam().pool + "}}", "cpu.yaml");
  EXPECT_THAT(MessageOf(ParseCpuConfig(*section).status()), HasSubstr(GetParam().sentence));
}

const Mistake kMistakes[] = {
    {"PlaceOfAList", "cpus: 1-2, place: {numa: one}", "place is for pools with a size only"},
    {"UnknownNode", "size: {min: 1}, place: {numa: two}", "place.numa is 'two'"},
    {"RequiresNodeWithoutOne", "size: {min: 1}, place: {require: numa}",
     "require has 'numa', which place does not set"},
    {"RequiresAnyCore", "size: {min: 1}, place: {numa: one, require: [numa, core]}",
     "require has 'core', which place does not set"},
    {"RequiresToBeNearToNothing", "size: {min: 1}, place: {require: near}",
     "require has 'near', which place does not set"},
    {"AvoidsNobody", "size: {min: 1}, place: {avoid: {share: l3}}", "with names no pool"},
    {"AvoidsItself", "size: {min: 1}, place: {avoid: {with: p}}",
     "with has 'p', which is not another pool"},
    {"InstancesOfAList", "cpus: 1-2, instances: {by: pod}",
     "instances is for pools with a size only"},
    {"InstancesByNothing", "size: {min: 1}, instances: {max: 2}",
     "by is '', which does not group containers"},
    {"InstancesByAnEmptyLabel", "size: {min: 1}, instances: {by: 'label:'}",
     "by is 'label:', which does not group containers"},
    {"NoInstance", "size: {min: 1}, instances: {by: pod, max: 0}", "max is '0'"},
    {"BoundToAPoolOfAllNodes", "size: {min: 1}, numa-bound: other",
     "numa-bound is 'other', which is not a pool by NUMA node"},
    {"OneInstanceOfAll", "size: {min: 1}, instances: {by: all}",
     "by is 'all', so that one instance would have all containers"},
    {"AnotherInstanceOnANode", "size: {min: 1}, instances: {by: numa-node, when-full: any}",
     "by is 'numa-node', with one instance on each node"},
    {"FewestContainersOfAPod", "size: {min: 1}, instances: {by: pod, fill: fewest}",
     "fill is 'fewest', which is for by: numa-node"},
    {"InstancesWithoutCpus", "size: {}, instances: {by: pod, min: 2}", "min is '2'"},
    {"MoreInstancesThanAllowed", "size: {min: 1}, instances: {by: pod, min: 2, max: 1}",
     "min is '2'"},
    {"KeepsCpusNearNothing", "size: {min: 1}, place: {keep-near: true}",
     "keep-near is 'true', but near names no device of the machine"},
};
INSTANTIATE_TEST_SUITE_P(Pools, PlaceMistakeTest, testing::ValuesIn(kMistakes),
                         [](const auto& tested) { return tested.param.name; });

TEST(OfflineThreadsTest, APoolOfWholeCoresTakesNoPartOfAnotherPoolInstead) {
  MachineParts parts;
  parts.nodes = {{.id = 0}};
  for (int cpu = 0; cpu < 12; ++cpu) {
    parts.cpus.push_back({.id = cpu, .core = cpu / 4 * 4});
  }
  DrivenNode node(std::move(parts), Tuned::kNo);
  node.Start("pools: {a: {size: {max: 8}, roles: [a], place: {threads: whole-cores}}}");
  ASSERT_TRUE(node.drive().Admit(test::Request("pod", "a", "cpu", 4)).ok());
  ASSERT_EQ(ToString(node.Pools().at("a")), "0-3");
  node.SetOffline({1, 3});
  node.drive().Reconcile();
  EXPECT_EQ(ToString(node.Pools().at("a")), "0,2");
  node.Restart();
  EXPECT_EQ(ToString(node.Pools().at("a")), "0,2");
  node.SetOffline({});
  node.drive().Reconcile();
  EXPECT_EQ(ToString(node.Pools().at("a")), "0-3");
}

}  // namespace
}  // namespace qrm::cpu::place_test
