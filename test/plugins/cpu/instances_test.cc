// Instances of pools: their containers, when they exist, where they are, and what is rejected.
#include "plugins/cpu/config/instances.h"

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::instances_test {
namespace {

using std::chrono::seconds;
using test::Drive;
using test::Request;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class InstancesTest : public ElasticPlugins {
 protected:
  static ContainerRequest In(const std::string& pod_namespace, const std::string& pod,
                             double cpus) {
    ContainerRequest request = Request(pod, "", "cpu", cpus);
    request.pod_namespace = pod_namespace;
    return request;
  }
  static void AdmitIn(Drive& drive, const std::string& pod_namespace, const std::string& pod,
                      double cpus) {
    const auto admitted = drive.Admit(In(pod_namespace, pod, cpus));
    ASSERT_TRUE(admitted.ok()) << admitted.status();
  }
  static std::vector<std::string> Names(const Drive& drive) {
    std::vector<std::string> names;
    for (const sdk::Pool& pool : drive.plugin().Pools()) {
      names.push_back(pool.name);
    }
    return names;
  }
};

/// The second worked example.
constexpr char kTeams[] = R"(
rules: [{select: {namespace: [team-*, "!team-ops"]}, pool: team}]
pools:
  team: {size: {min: 1, max: 16}, instances: {by: namespace, max: 6}, place: {numa: fewest}, borrow: {idle: numa}}
  default: {size: {min: 4}}
on-full: default-pool
)";

TEST_F(InstancesTest, EachTeamHasItsExclusiveCpusBesideIdleOnesOfItsNode) {
  Drive drive = Start(kTeams);
  EXPECT_THAT(Names(drive), ElementsAre("default"));
  AdmitIn(drive, "team-a", "a", 6);
  AdmitIn(drive, "team-b", "b", 3.5);
  drive.Reconcile();
  EXPECT_THAT(Names(drive), ElementsAre("default", "team/team-a", "team/team-b"));
  EXPECT_EQ(Size(drive, "default"), 4);
  EXPECT_EQ(Size(drive, "team/team-a"), 6);
  EXPECT_EQ(Size(drive, "team/team-b"), 4);
  const CpuSet used = *CpuSet::Parse(drive.Value("a"));
  EXPECT_TRUE(Pool(drive, "team/team-a").IsSubsetOf(used));
  EXPECT_FALSE(used.Intersects(Pool(drive, "team/team-b")));
  EXPECT_EQ(used.Count(), 32 - 4 - 4);
  EXPECT_EQ(ToString(TwoNodes().NodesOf(used)), "0");
}

TEST_F(InstancesTest, ContainersOfOneGroupShare) {
  Drive drive = Start(kTeams);
  AdmitIn(drive, "team-a", "a", 3);
  AdmitIn(drive, "team-a", "b", 4);
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "team/team-a"), 7);
  EXPECT_EQ(drive.Value("a"), drive.Value("b"));
}

TEST_F(InstancesTest, AreGoneSomeTimeAfterTheirLastContainer) {
  Drive drive = Start(kTeams);
  AdmitIn(drive, "team-a", "a", 6);
  drive.RemovePod("a");
  drive.Reconcile();
  EXPECT_EQ(Size(drive, "team/team-a"), 6);
  clock_.Advance(seconds(30));
  drive.Reconcile();
  EXPECT_THAT(Names(drive), ElementsAre("default"));
}

TEST_F(InstancesTest, DoNotMoveAtARestart) {
  Drive before = Start(kTeams);
  AdmitIn(before, "team-b", "b", 5);
  AdmitIn(before, "team-a", "a", 6);
  const std::string was = before.plugin().ExportState(before.grants());
  Drive after = Restart(kTeams, before);
  EXPECT_EQ(after.plugin().ExportState(after.grants()), was);
}

TEST_F(InstancesTest, BecomeOnePoolWhereTheConfigurationHasNoneAnyMore) {
  Drive before = Start(kTeams);
  AdmitIn(before, "team-b", "b", 5);
  AdmitIn(before, "team-a", "a", 6);
  Drive after = Restart(R"(
rules: [{select: {namespace: [team-*]}, pool: team}]
pools: {team: {size: {min: 1}}}
)",
                        before);
  after.Reconcile();
  EXPECT_THAT(Names(after), ElementsAre("team", "default"));
  EXPECT_EQ(Size(after, "team"), 11);
  EXPECT_EQ(after.Value("a"), after.Value("b"));
}

TEST_F(InstancesTest, NoMoreThanTheirMostAndThenTheDefaultPool) {
  Drive drive = Start(kTeams);
  for (int team = 0; team < 6; ++team) {
    AdmitIn(drive, "team-" + std::to_string(team), "pod" + std::to_string(team), 1);
  }
  AdmitIn(drive, "team-6", "late", 1);
  drive.Reconcile();
  EXPECT_EQ(drive.Value("late"), ToString(Pool(drive, "default")));
  EXPECT_THAT(drive.Of("late").decided_by, AllOf(HasSubstr("on-full"), HasSubstr("rules[0]")));

  // A pod that ends moves no container, and neither does a restart.
  drive.RemovePod("pod0");
  drive.Reconcile();
  clock_.Advance(seconds(30));
  drive.Reconcile();
  Drive after = Restart(kTeams, drive);
  after.Reconcile();
  EXPECT_EQ(after.Value("late"), ToString(Pool(after, "default")));
}

TEST_F(InstancesTest, NoMoreThanTheirMostIsRejectedWithoutOnFull) {
  Drive drive = Start(R"(
rules: [{select: {namespace: team-*}, pool: team}]
pools: {team: {size: {min: 1}, instances: {by: namespace, max: 1}}}
)");
  AdmitIn(drive, "team-a", "a", 1);
  EXPECT_THAT(MessageOf(drive.Admit(In("team-b", "b", 1)).status()),
              HasSubstr("pool team has reached instances.max, which is 1"));
}

TEST_F(InstancesTest, AMistakeIsRejectedWhateverOnFullSays) {
  Drive drive = Start("{roles: {own: {}}, on-full: default-pool}");
  const auto refused = drive.Admit(Request("a", "own", "cpu", 1.5));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("request a whole number of CPUs"));
}

TEST_F(InstancesTest, PodWithoutTheLabelIsRejectedWithASentence) {
  Drive drive = Start("pools: {rt: {size: {min: 1}, roles: [rt], instances: {by: 'label:shard'}}}");
  EXPECT_THAT(
      MessageOf(drive.Admit(Request("a", "rt", "cpu", 1)).status()),
      HasSubstr("pool rt has an instance for each value of label shard, which the pod lacks"));
}

TEST_F(InstancesTest, ByContainerNoTwoShare) {
  Drive drive = Start("pools: {p: {size: {min: 1}, roles: [p], instances: {by: container}}}");
  ContainerRequest other = Request("a", "p", "cpu", 2);
  other.key.container = "c1";
  Admit(drive, "a", "p", 3);
  ASSERT_TRUE(drive.Admit(other).ok());
  EXPECT_EQ(Names(drive).size(), 3U);
}

/// The third worked example, with a fraction of its machine's room.
constexpr char kEngines[] = R"(
pools:
  llm:
    size: {min: 8, max: 32}
    roles: [engine]
    instances: {by: pod, fill: balanced}
    place: {numa: one, threads: one-per-core, require: [numa]}
)";

TEST_F(InstancesTest, EachIsOnOneNodeOrRejected) {
  Drive drive = Start(kEngines);
  Admit(drive, "a", "engine", 12);
  Admit(drive, "b", "engine", 12);
  EXPECT_EQ(drive.Value("a"), "0-11");
  EXPECT_EQ(drive.Value("b"), "16-27");
  EXPECT_EQ(Size(drive, "llm/default/b"), 24);
  const auto refused = drive.Admit(Request("c", "engine", "cpu", 12));
  EXPECT_THAT(MessageOf(refused.status()),
              AllOf(HasSubstr("wants 24 CPUs of one NUMA node"), HasSubstr("node 0: 8 of 32 left"),
                    HasSubstr("node 1: 8 of 32 left")));
}

TEST_F(InstancesTest, GoWhereTheManagerChoseANode) {
  Drive drive = Start(kEngines);
  const ContainerRequest request = Request("a", "engine", "cpu", 12);
  const auto hints = drive.plugin().Hints(request);
  ASSERT_TRUE(hints.ok()) << hints.status();
  ASSERT_EQ(hints->hints().size(), 2U);
  drive.Keep(request, drive.plugin().Allocate(request, hints->hints()[1]));
  EXPECT_EQ(drive.Value("a"), "16-27");
}

TEST_F(InstancesTest, PreferTheNodeWhereTheyGetMost) {
  Drive drive = Start(R"(
pools: {db: {size: {per: limit}, roles: [db], instances: {by: pod}, place: {numa: one, require: numa}}}
)");
  ContainerRequest first = Request("a", "db", "cpu", 8);
  first.limit = 20;
  ASSERT_TRUE(drive.Admit(first).ok());
  ContainerRequest second = Request("b", "db", "cpu", 8);
  second.limit = 20;
  const auto hints = drive.plugin().Hints(second);
  ASSERT_TRUE(hints.ok()) << hints.status();
  ASSERT_EQ(hints->hints().size(), 2U);
  EXPECT_FALSE(hints->hints()[0].preferred);
  EXPECT_TRUE(hints->hints()[1].preferred);
}

TEST_F(InstancesTest, BalancedOnesPreferTheNodeWithMostRoom) {
  Drive drive = Start(R"(
pools: {db: {size: {}, roles: [db], instances: {by: pod, fill: balanced}, place: {numa: one, require: numa}}}
)");
  Admit(drive, "a", "db", 4);
  const auto hints = drive.plugin().Hints(Request("b", "db", "cpu", 4));
  ASSERT_TRUE(hints.ok()) << hints.status();
  ASSERT_EQ(hints->hints().size(), 2U);
  EXPECT_FALSE(hints->hints()[0].preferred);
  EXPECT_TRUE(hints->hints()[1].preferred);
}

TEST_F(InstancesTest, StayOnTheirNodeAndOfferNoOther) {
  Drive drive = Start(kEngines);
  Admit(drive, "a", "engine", 10);
  ContainerRequest helper = Request("a", "engine", "cpu", 2);
  helper.key.container = "helper";
  const auto hints = drive.plugin().Hints(helper);
  ASSERT_TRUE(hints.ok()) << hints.status();
  ASSERT_EQ(hints->hints().size(), 1U);
  EXPECT_EQ(ToString(hints->hints()[0].nodes), "0");
}

TEST_F(InstancesTest, PackedOnesFillANodeFirst) {
  Drive drive = Start(R"(
pools: {db: {size: {min: 4}, roles: [db], instances: {by: pod, fill: packed}, place: {numa: one, require: numa}}}
)");
  Admit(drive, "a", "db", 12);
  Admit(drive, "b", "db", 12);
  Admit(drive, "c", "db", 12);
  const Machine machine = TwoNodes();
  EXPECT_EQ(ToString(machine.NodesOf(Pool(drive, "db/default/b"))), "0");
  EXPECT_EQ(ToString(machine.NodesOf(Pool(drive, "db/default/c"))), "1");
}

TEST_F(InstancesTest, TakeTheirNodesCpusFromPoolsThatCanHaveOthers) {
  Drive drive = Start(R"(
pools:
  wide: {size: {min: 20}}
  llm: {size: {min: 4}, roles: [engine], instances: {by: pod}, place: {numa: one, require: numa}}
)");
  ASSERT_TRUE(Pool(drive, "wide").IsSubsetOf(TwoNodes().CpusOf({0})));
  Admit(drive, "a", "engine", 30);
  Admit(drive, "b", "engine", 12);
  EXPECT_EQ(Size(drive, "llm/default/a"), 30);
  EXPECT_EQ(Size(drive, "wide"), 20);
  EXPECT_EQ(Size(drive, "llm/default/b"), 12);
}

constexpr char kFilled[] = R"(
rules: [{select: {namespace: ["*"]}, pool: team}]
pools:
  team: {size: {min: 2, max: 4}, instances: {by: all, max: 3, when-full: another}}
  default: {size: {min: 4}}
)";

TEST_F(InstancesTest, ASecondOneServesWhatTheFirstHasNoRoomFor) {
  Drive drive = Start(kFilled);
  AdmitIn(drive, "x", "a", 3);
  AdmitIn(drive, "y", "b", 1);
  AdmitIn(drive, "x", "c", 1);
  drive.Reconcile();
  EXPECT_THAT(Names(drive), ElementsAre("default", "team/all", "team/all:2"));
  EXPECT_EQ(drive.Value("a"), drive.Value("b"));
  EXPECT_NE(drive.Value("a"), drive.Value("c"));
  AdmitIn(drive, "z", "d", 2);
  drive.Reconcile();
  EXPECT_EQ(drive.Value("d"), drive.Value("c")) << "which can grow";
}

TEST_F(InstancesTest, WithoutRoomForAnotherOneAContainerIsRejected) {
  Drive drive = Start(kFilled);
  EXPECT_THAT(MessageOf(drive.Admit(In("x", "e", 5)).status()),
              HasSubstr("would request 5 CPUs, but it can have only 4"));
  for (const char* pod : {"a", "b", "c"}) {
    AdmitIn(drive, "x", pod, 4);
  }
  EXPECT_THAT(MessageOf(drive.Admit(In("x", "d", 1)).status()),
              HasSubstr("pool team has reached instances.max, which is 3"));
}

TEST_F(InstancesTest, ContainersOfAPodStayTogetherWhileThereIsRoom) {
  Drive drive = Start(kFilled);
  AdmitIn(drive, "x", "a", 3);
  AdmitIn(drive, "x", "b", 2);
  ASSERT_NE(drive.Value("a"), drive.Value("b"));
  ContainerRequest helper = In("x", "a", 0.5);
  helper.key.container = "helper";
  const auto given = drive.Admit(helper);
  ASSERT_TRUE(given.ok()) << given.status();
  drive.Reconcile();
  EXPECT_EQ(given->value, drive.Value("a")) << "though the other one has more room";
}

TEST_F(InstancesTest, AContainerStaysInItsInstanceThroughResizesAndRestarts) {
  Drive before = Start(kFilled);
  AdmitIn(before, "x", "a", 4);
  AdmitIn(before, "x", "b", 1);
  AdmitIn(before, "x", "c", 1);
  before.RemovePod("a");
  Drive drive = Restart(kFilled, before);
  EXPECT_EQ(drive.Of("b").shares_of, "team/all:2");
  AdmitIn(drive, "x", "b", 3);
  EXPECT_EQ(drive.Of("b").shares_of, "team/all:2") << "though the first one is empty";
  AdmitIn(drive, "x", "b", 4);
  EXPECT_EQ(drive.Of("b").shares_of, "") << "it has outgrown the second one";
  EXPECT_EQ(drive.Of("c").shares_of, "team/all:2");
}

TEST_F(InstancesTest, SomeExistWithoutContainersAndAreTakenOver) {
  Drive drive = Start(R"(
pools:
  team: {roles: [t], size: {min: 2}, instances: {by: pod, min: 2}}
  default: {size: {min: 4}}
)");
  EXPECT_THAT(Names(drive), ElementsAre("default", "team/:1", "team/:2"));
  const CpuSet spare = Pool(drive, "team/:2");
  EXPECT_EQ(spare.Count(), 2);
  Admit(drive, "a", "t", 2);
  EXPECT_THAT(Names(drive), ElementsAre("default", "team/:1", "team/default/a"));
  EXPECT_EQ(Pool(drive, "team/default/a"), spare);
  Admit(drive, "b", "t", 2);
  Admit(drive, "c", "t", 2);
  EXPECT_THAT(Names(drive),
              ElementsAre("default", "team/default/a", "team/default/b", "team/default/c"));
  for (const char* pod : {"a", "b", "c"}) {
    drive.RemovePod(pod);
  }
  drive.Reconcile();
  clock_.Advance(seconds(30));
  drive.Reconcile();
  EXPECT_THAT(Names(drive), ElementsAre("default", "team/default/a", "team/default/b"))
      << "those that were there stay for the next ones";
  EXPECT_EQ(Size(drive, "team/default/b"), 2);
}

TEST_F(InstancesTest, ThoseOfAHigherPriorityChooseTheirCpusFirst) {
  static constexpr char kText[] = R"(
pools:
  a: {{roles: [a], size: {{min: 2}}, priority: {}, instances: {{by: pod, min: 1}}}}
  b: {{roles: [b], size: {{min: 2}}, priority: {}, instances: {{by: pod, min: 1}}}}
  default: {{size: {{}}}}
)";
  EXPECT_EQ(ToString(Pool(Start(fmt::format(kText, 1, 2)), "b/:1")), "0,32");
  EXPECT_EQ(ToString(Pool(Start(fmt::format(kText, 2, 1)), "a/:1")), "0,32");
}

TEST_F(InstancesTest, SidecarsOfADedicatedPodShareTheCpusOfItsMainContainer) {
  Drive drive = Start(R"(
rules: [{select: {qos-level: dedicated_cores}, pool: dedicated}]
pools:
  dedicated: {size: {overcommit: refuse}, instances: {by: pod}, place: {numa: one, require: numa}}
  default: {size: {min: 4}}
)");
  ContainerRequest request = Request("a", "", "cpu", 4);
  request.annotations = {{"katalyst.kubewharf.io/qos_level", "dedicated_cores"}};
  ASSERT_TRUE(drive.Admit(request).ok());
  request.key.container = "sidecar";
  request.requests.Edit()["cpu"] = 0.0;
  const auto sidecar = drive.Admit(request);
  ASSERT_TRUE(sidecar.ok()) << sidecar.status();
  EXPECT_EQ(sidecar->value, drive.Value("a"));
  EXPECT_EQ(CpuSet::Parse(drive.Value("a"))->Count(), 4);
  Admit(drive, "b", "", 60);
  EXPECT_FALSE(CpuSet::Parse(drive.Value("b"))->Intersects(*CpuSet::Parse(drive.Value("a"))));
}

/// The fifth worked example.
TEST_F(InstancesTest, HaveRoomUpToTheirLimitsWhileThereIsRoom) {
  Drive drive = Start(R"(
rules: [{select: {label: {app: postgres}}, pool: db}]
pools:
  db:
    size: {min: 4, max: 24, per: limit}
    instances: {by: pod}
    place: {numa: one, require: [numa]}
    class: roomy
classes: {roomy: {qos: {cpu-quota: burst-half}}}
)");
  const auto admit = [&](const std::string& pod) {
    ContainerRequest request = Request(pod, "", "cpu", 4);
    request.limit = 12;
    request.labels = {{"app", "postgres"}};
    const auto given = drive.Admit(request);
    ASSERT_TRUE(given.ok()) << given.status();
  };
  const auto sizes = [&] {
    std::map<std::string, std::vector<int>> by_node;
    for (const sdk::Pool& pool : drive.plugin().Pools()) {
      if (pool.name != kDefaultPool) {
        by_node[ToString(TwoNodes().NodesOf(pool.cpus))].push_back(pool.cpus.Count());
      }
    }
    return by_node;
  };
  for (const char* pod : {"a", "b", "c", "d"}) {
    admit(pod);
  }
  EXPECT_EQ(sizes(), (std::map<std::string, std::vector<int>>{{"0", {12, 12}}, {"1", {12, 12}}}));
  admit("e");
  EXPECT_EQ(sizes(),
            (std::map<std::string, std::vector<int>>{{"0", {11, 11, 10}}, {"1", {12, 12}}}));
  EXPECT_EQ(drive.Of("e").class_defaults, (StringMap{{"cpu-quota", "burst-half"}}));
}

TEST_F(InstancesTest, RequestsComeBeforeSizesBeyondRequests) {
  Drive drive = Start(R"(
pools: {db: {size: {min: 1, per: limit}, roles: [db], instances: {by: pod}}}
)");
  const auto admit = [&](const std::string& pod, double cpus, double limit) {
    ContainerRequest request = Request(pod, "db", "cpu", cpus);
    request.limit = limit;
    const auto given = drive.Admit(request);
    ASSERT_TRUE(given.ok()) << given.status();
  };
  admit("big", 40, 41);
  admit("small", 2, 60);
  EXPECT_GE(Size(drive, "db/default/big"), 40);
  EXPECT_GE(Size(drive, "db/default/small"), 20);
}

TEST_F(InstancesTest, RequestsComeFirstOnANodeToo) {
  Drive drive = Start(R"(
pools: {db: {size: {per: limit}, roles: [db], instances: {by: pod}, place: {numa: one, require: numa}}}
)");
  const auto admit = [&](const std::string& pod, double cpus, double limit) {
    ContainerRequest request = Request(pod, "db", "cpu", cpus);
    request.limit = limit;
    drive.Keep(request, drive.plugin().Allocate(request, {.nodes = {0}}));
  };
  admit("big", 24, 25);
  admit("small", 2, 30);
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "db/default/small"))), "0");
  EXPECT_GE(Size(drive, "db/default/big"), 24);
  EXPECT_GT(Size(drive, "db/default/small"), 2);
}

TEST_F(InstancesTest, WithoutAHintPackedOnesTakeTheFirstNodeAndBalancedOnesTheEmptiest) {
  for (const auto& [fill, node] : {std::pair("packed", "0"), std::pair("balanced", "1")}) {
    Drive drive = Start(fmt::format(
        "pools: {{db: {{size: {{}}, roles: [db], instances: {{by: pod, fill: {}}}, place: {{numa: "
        "one, require: numa}}}}}}",
        fill));
    for (const char* const pod : {"a", "b"}) {
      const ContainerRequest request = Request(pod, "db", "cpu", 4);
      drive.Keep(request, drive.plugin().Allocate(request, {}));
    }
    EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "db/default/a"))), "0");
    EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "db/default/b"))), node) << fill;
  }
}

/// The ninth worked example.
TEST_F(InstancesTest, HybridMachineHasSoManyGames) {
  MachineParts parts;
  for (int cpu = 0; cpu < 24; ++cpu) {
    const bool fast = cpu < 16;
    parts.cpus.push_back(
        {.id = cpu, .core = fast ? cpu - cpu % 2 : cpu, .core_kind = fast ? 1 : 0});
  }
  parts.nodes = {{.id = 0}};
  Drive drive(MakeElastic(R"(
rules: [{select: {namespace: kube-system}, pool: small}, {select: {label: {app: game}}, pool: big}]
pools:
  small: {size: {min: 2, max: 8}, place: {core: efficient}}
  big:   {size: {min: 4, max: 8}, instances: {by: pod}, place: {core: performance, threads: one-per-core, require: [core]}}
)",
                          Machine(std::move(parts))));
  const auto game = [&](const std::string& pod) {
    ContainerRequest request = Request(pod, "", "cpu", 4);
    request.labels = {{"app", "game"}};
    return drive.Admit(request);
  };
  ASSERT_TRUE(game("a").ok());
  EXPECT_EQ(drive.Value("a"), "0,2,4,6");
  EXPECT_EQ(ToString(Pool(drive, "big/default/a")), "0-7");
  ASSERT_TRUE(game("b").ok());
  EXPECT_EQ(game("c").status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ToString(Pool(drive, "small")), "16-17");
}

TEST_F(InstancesTest, LendAndBorrowAsTheirPoolSays) {
  Drive drive = Start(R"(
pools:
  batch: {size: {min: 2}, roles: [batch]}
  team: {size: {min: 1}, roles: [team], instances: {by: pod}, lend: {to: [batch], keep: 2}}
)");
  Admit(drive, "a", "team", 6);
  Admit(drive, "b", "batch", 2);
  drive.Reconcile();
  EXPECT_EQ(CpuSet::Parse(drive.Value("b"))->Count(), 2 + 4);
}

}  // namespace
}  // namespace qrm::cpu::instances_test
