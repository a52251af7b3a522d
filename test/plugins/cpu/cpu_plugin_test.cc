// The cpu plugin as the SDK drives it: the proposal's examples, pools that move.
#include "plugins/cpu/cpu_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::cpu_plugin_test {
namespace {

using test::Drive;
using test::ExampleMachine;
using test::Request;
using testing::HasSubstr;

TEST(CpuExampleTest, FirstExamplePlacesInPoolsAndFollowsThem) {
  Drive drive(Make(kTwoPools));
  const auto pod1 = drive.Admit(Request("pod1", "online-micro_service", "cpu", 4));
  const auto pod2 = drive.Admit(Request("pod2", "ETL", "cpu", 2));
  const auto pod3 = drive.Admit(Request("pod3", "online-micro_service", "cpu", 4));
  ASSERT_TRUE(pod1.ok() && pod2.ok() && pod3.ok());
  EXPECT_EQ(pod1->oci_property, "CpusetCpus");
  EXPECT_EQ(pod1->value, "0-37,40-77");
  EXPECT_EQ(pod1->quantity, 76);
  EXPECT_TRUE(pod1->is_scalar_resource);
  EXPECT_FALSE(pod1->is_node_resource);
  EXPECT_FALSE(pod1->exclusive);
  EXPECT_FALSE(pod1->hints.has_value());
  EXPECT_EQ(pod2->value, "38-39,78-79");
  EXPECT_EQ(pod2->quantity, 4);
  EXPECT_EQ(pod3->value, "0-37,40-77");

  ASSERT_TRUE(drive.plugin()
                  .SetPools({{"online", *CpuSet::Parse("0-13,40-53")},
                             {"offline", *CpuSet::Parse("14-39,54-79")}})
                  .ok());
  drive.Reconcile();
  EXPECT_EQ(drive.Value("pod1"), "0-13,40-53");
  EXPECT_EQ(drive.Value("pod2"), "14-39,54-79");
  EXPECT_EQ(drive.Value("pod3"), "0-13,40-53");
  EXPECT_EQ(drive.Quantity("pod1"), 28);
  EXPECT_EQ(drive.Quantity("pod2"), 52);
}

TEST(CpuExampleTest, SecondExampleKeepsRolesOnSeparateNodes) {
  Drive drive(Make(kThreeRoles));
  EXPECT_EQ(drive.plugin().ExportState({}), R"({
    "machineState": {
        "0": {
            "reserved_cpuset": "0-1",
            "allocated_cpuset": "",
            "default_cpuset": "2-39"
        },
        "1": {
            "reserved_cpuset": "40-41",
            "allocated_cpuset": "",
            "default_cpuset": "42-79"
        }
    },
    "pod_entries": {}
})");
  const auto pod1 = drive.Admit(Request("pod1", "storage-service", "cpu", 20));
  ASSERT_TRUE(pod1.ok()) << pod1.status();
  EXPECT_EQ(pod1->value, "2-21");
  EXPECT_EQ(pod1->quantity, 20);
  EXPECT_TRUE(pod1->exclusive);
  EXPECT_EQ(pod1->hints, (std::vector<TopologyHint>{{.nodes = {0}, .preferred = true}}));
  EXPECT_EQ(pod1->amount_by_node, (std::map<uint64_t, uint64_t>{{0, 20}}));

  const auto hints = drive.plugin().Hints(Request("pod2", "reranker", "cpu", 10));
  ASSERT_TRUE(hints.ok()) << hints.status();
  EXPECT_EQ(hints->hints(), (std::vector<TopologyHint>{{.nodes = {1}, .preferred = true}}));
  const auto pod2 = drive.Admit(Request("pod2", "reranker", "cpu", 10));
  ASSERT_TRUE(pod2.ok()) << pod2.status();
  EXPECT_EQ(pod2->value, "42-51");
  EXPECT_EQ(pod2->hints, (std::vector<TopologyHint>{{.nodes = {1}, .preferred = true}}));
}

TEST(CpuExampleTest, ThirdExampleSharesNodeWithTheRole) {
  Drive drive(Make(kThreeRoles));
  EXPECT_EQ(drive.Admit(Request("filler", "storage-service", "cpu", 38))->value, "2-39");
  EXPECT_EQ(drive.Admit(Request("pod1", "numa-enhancement", "cpu", 10))->value, "42-51");
  EXPECT_EQ(drive.Admit(Request("pod2", "numa-enhancement", "cpu", 10))->value, "52-61");
}

TEST(CpuPluginTest, KeepsContainersWithoutARequestOnTheDefaultPool) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("owner", "storage-service", "cpu", 38)).ok());
  for (const char* role : {"", "storage-service"}) {
    const auto best_effort = drive.Admit(Request("best-effort", role, "cpu", 0));
    ASSERT_TRUE(best_effort.ok()) << best_effort.status();
    EXPECT_EQ(best_effort->value, "42-79");
    EXPECT_FALSE(best_effort->exclusive);
  }
}

TEST(CpuPluginTest, RejectsWithFreeCpusAndOpponentsByName) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("pod1", "storage-service", "cpu", 20)).ok());
  ASSERT_TRUE(drive.Admit(Request("pod2", "numa-enhancement", "cpu", 30)).ok());
  const Status status = drive.Admit(Request("pod3", "numa-enhancement", "cpu", 10)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status),
            "cannot place container c0 of pod default/pod3: no allowed NUMA nodes have 10 CPUs for "
            "numa-enhancement; request fewer CPUs or delete a pod (node 0: occupied by "
            "storage-service, node 1: 8 free)");
}

TEST(CpuPluginTest, RemovedPodLeavesItsCpusAndItsNode) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("pod1", "storage-service", "cpu", 20)).ok());
  drive.RemovePod("pod1");
  EXPECT_EQ(drive.Admit(Request("pod2", "reranker", "cpu", 10))->value, "2-11");
}

TEST(CpuPluginTest, RejectsFractionOfExclusiveCpu) {
  Drive drive(Make(kThreeRoles));
  for (const double amount : {0.5, 1.5, -1.0}) {
    const Status status = drive.Admit(Request("pod1", "reranker", "cpu", amount)).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << amount;
    EXPECT_THAT(MessageOf(status), HasSubstr("whole number"));
  }
}

TEST(CpuPluginTest, DefaultPoolShrinksWhenCpusBecomeExclusive) {
  Drive drive(Make(kThreeRoles));
  EXPECT_EQ(drive.Admit(Request("plain", "", "cpu", 1))->value, "2-39,42-79");
  ASSERT_TRUE(drive.Admit(Request("pod1", "reranker", "cpu", 10)).ok());
  drive.Reconcile();
  EXPECT_EQ(drive.Value("plain"), "12-39,42-79");
  drive.RemovePod("pod1");
  drive.Reconcile();
  EXPECT_EQ(drive.Value("plain"), "2-39,42-79");
}

TEST(CpuPluginTest, GivesAPoolBackToContainersThatCameWhileItWasSmall) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("first", "", "cpu", 1)).ok());
  drive.Reconcile();
  ASSERT_TRUE(drive.Admit(Request("pod1", "reranker", "cpu", 10)).ok());
  ASSERT_EQ(drive.Admit(Request("second", "", "cpu", 1))->value, "12-39,42-79");
  drive.RemovePod("pod1");  // the pool is as large as when all had been placed
  drive.Reconcile();
  EXPECT_EQ(drive.Value("first"), "2-39,42-79");
  EXPECT_EQ(drive.Value("second"), "2-39,42-79");
}

TEST(CpuPluginTest, FollowsAPoolWhoseOnlyContainerCameWhileItWasSmall) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("former", "", "cpu", 1)).ok());
  drive.Reconcile();
  drive.RemovePod("former");
  ASSERT_TRUE(drive.Admit(Request("pod1", "reranker", "cpu", 10)).ok());
  ASSERT_EQ(drive.Admit(Request("plain", "", "cpu", 1))->value, "12-39,42-79");
  drive.RemovePod("pod1");
  drive.Reconcile();
  EXPECT_EQ(drive.Value("plain"), "2-39,42-79");
}

TEST(CpuPluginTest, NeverEmptiesDefaultPool) {
  Drive drive(Make("pools: {big: {cpus: \"0-69\"}}\nroles: {r: {}}"));
  const Status status = drive.Admit(Request("pod1", "r", "cpu", 10)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(status),
              HasSubstr("requests 10 exclusive CPUs, but the shared pool has only 10 CPUs "
                        "left; request fewer CPUs or delete a pod"));
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "cpu", 9))->value, "70-78");
}

TEST(CpuPluginTest, InitAndSidecarOfExclusivePodUseDefaultPool) {
  Drive drive(Make(kThreeRoles));
  ContainerRequest request = Request("pod1", "reranker", "cpu", 10);
  for (const ContainerType type :
       {ContainerType::kInit, ContainerType::kSidecar, ContainerType::kEphemeral}) {
    request.type = type;
    request.key.container = std::string(ToString(type));
    EXPECT_TRUE(drive.plugin().Hints(request)->IsNoPreference());
    EXPECT_EQ(drive.Admit(request)->value, "2-39,42-79");
  }
}

TEST(CpuPluginTest, StaticRuleGivesGuaranteedContainersWholeCpus) {
  Drive drive(Make("reserved-cpus: 0-1\nstatic: true"));
  ContainerRequest request = Request("pod1", "", "cpu", 4);
  EXPECT_EQ(drive.Admit(request)->value, "0-79") << "not Guaranteed: the default pool";
  drive.RemovePod("pod1");
  request.native_qos_class = "Guaranteed";
  EXPECT_EQ(drive.Admit(request)->value, "2-5");
  ContainerRequest fraction = Request("pod2", "", "cpu", 1.5);
  fraction.native_qos_class = "Guaranteed";
  EXPECT_EQ(drive.Admit(fraction)->value, "0-1,6-79");
}

TEST(CpuPluginTest, WholeCoreRoleTakesNoPartialCores) {
  Drive drive(Make("reserved-cpus: \"0\"\nroles: {r: {whole-cores: true}}", ExampleMachine(2)));
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "cpu", 4))->value, "2-5");
  const Status odd = drive.Admit(Request("pod2", "r", "cpu", 3)).status();
  EXPECT_EQ(odd.code(), StatusCode::kInvalidArgument) << odd;
}

TEST(CpuPluginTest, WholeCoreRoleHasNoHintForAPartOfACore) {
  const auto plugin =
      Make("reserved-cpus: \"0\"\nroles: {r: {whole-cores: true}}", ExampleMachine(2));
  const auto hints = plugin->Hints(Request("pod1", "r", "cpu", 3));
  EXPECT_EQ(hints.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(hints.status()),
              HasSubstr("3 CPUs as whole cores: a core has 2 CPUs; ask for a multiple of 2"));
}

TEST(CpuPluginTest, EvenRoleTakesSameShareOfEachNode) {
  Drive drive(Make("roles: {r: {numa: even}}"));
  const auto pod = drive.Admit(Request("pod1", "r", "cpu", 60));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->amount_by_node, (std::map<uint64_t, uint64_t>{{0, 30}, {1, 30}}));
}

TEST(CpuPluginTest, EvenRoleHasNoHintWhereItsNodesCannotGiveTheSame) {
  Drive drive(
      Make("roles: {r: {numa: even, share-numa-with: ['*']}, s: {share-numa-with: ['*']}}"));
  ASSERT_EQ(drive.Admit(Request("pod1", "s", "cpu", 20))->amount_by_node.size(), 1U);
  EXPECT_EQ(drive.plugin().Hints(Request("pod2", "r", "cpu", 50)).status().code(),
            StatusCode::kResourceExhausted)
      << "60 are free, but only 20 on one of the nodes";
  EXPECT_EQ(drive.Admit(Request("pod2", "r", "cpu", 40))->amount_by_node,
            (std::map<uint64_t, uint64_t>{{1, 40}}));
}

TEST(CpuPluginTest, FewestRoleSpreadsOnlyWhenItMust) {
  Drive drive(Make("roles: {r: {numa: fewest, share-numa-with: [r]}}"));
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "cpu", 30))->amount_by_node.size(), 1u);
  EXPECT_EQ(drive.Admit(Request("pod2", "r", "cpu", 45))->amount_by_node.size(), 2u);
}

TEST(CpuPluginTest, RoleOfOneNodeRejectsToSpread) {
  Drive drive(Make("roles: {r: {}}"));
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "cpu", 41)).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(CpuPluginTest, AlignsToOneCacheWhenAsked) {
  Drive drive(Make("reserved-cpus: 0-3\nroles: {r: {align-l3: true}}", ExampleMachine(1, 8)));
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "cpu", 8))->value, "8-15");
}

TEST(CpuPluginTest, PlacesByItselfWhenHintSaysAnywhere) {
  Drive drive(Make(kThreeRoles));
  const auto pod = drive.plugin().Allocate(Request("pod1", "reranker", "cpu", 10), {});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->value, "2-11");
}

TEST(CpuPluginTest, RejectsHintWhereNothingFits) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("pod1", "storage-service", "cpu", 20)).ok());
  const auto pod = drive.plugin().Allocate(Request("pod2", "reranker", "cpu", 10), {.nodes = {0}});
  EXPECT_EQ(pod.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(pod.status()), HasSubstr("no allowed NUMA nodes of 0 have 10 CPUs"));
}

TEST(CpuPluginTest, ReportsThePoolOfAQosLevelForPermissions) {
  Drive drive(Make("pools: {reclaim: {cpus: \"70-79\"}, share: {cpus: \"60-69\"}}"));
  ContainerRequest request = Request("pod", "", "cpu", 4);
  const auto pool = [&](const std::string& level) {
    request.annotations = {{"katalyst.kubewharf.io/qos_level", level}};
    return drive.plugin().Allocate(request, {})->pool;
  };
  EXPECT_EQ(pool("reclaimed_cores"), "reclaim");
  EXPECT_EQ(pool("shared_cores"), "share");
}

TEST(CpuPluginTest, QosAnnotationsPlaceByLevel) {
  Drive drive(
      Make("reserved-cpus: 0-1\npools: {reclaim: {cpus: \"70-79\"}, batch: {cpus: \"60-69\"}}"));
  ContainerRequest request = Request("pod", "", "cpu", 4);
  const auto value = [&](const StringMap& annotations) {
    request.annotations = annotations;
    const auto allocation = drive.plugin().Allocate(request, {});
    return allocation.ok() ? allocation->value : MessageOf(allocation.status());
  };
  const std::string level = "katalyst.kubewharf.io/qos_level";
  const std::string cpu = "katalyst.kubewharf.io/cpu_enhancement";
  EXPECT_EQ(value({{level, "reclaimed_cores"}}), "70-79");
  EXPECT_EQ(value({{level, "shared_cores"}}), "2-59");
  EXPECT_EQ(value({{level, "shared_cores"}, {cpu, R"({"cpuset_pool": "batch"})"}}), "60-69");
  EXPECT_EQ(value({{level, "system_cores"}}), "0-1");
  EXPECT_EQ(value({{level, "dedicated_cores"},
                   {"katalyst.kubewharf.io/memory_enhancement", R"({"numa_binding": "true"})"}}),
            "2-5");
  EXPECT_THAT(value({{level, "shared_cores"}, {cpu, R"({"cpuset_pool": "none"})"}}),
              HasSubstr("no such pool"));
  EXPECT_THAT(value({{level, "gold"}}), HasSubstr("is not a QoS level"));
  EXPECT_THAT(value({{cpu, "{"}}), HasSubstr("is not a JSON object"));
}

TEST(CpuPluginTest, KatalystsMeaningsOfLevelsHaveKeys) {
  Drive drive(Make(R"(
reserved-cpus: 0-1
default-pool: share
rules: [{select: {qos-level: system_cores}, leave-alone: true}]
pools:
  share: {size: {min: 4, max: 8, overcommit: refuse}}
  default: {size: {min: 2}}
)"));
  EXPECT_EQ(drive.Admit(Request("plain", "", "cpu", 6))->value, "4-9");
  ContainerRequest shared = Request("shared", "", "cpu", 3);
  shared.annotations = {{"katalyst.kubewharf.io/qos_level", "shared_cores"}};
  EXPECT_THAT(MessageOf(drive.Admit(shared).status()),
              HasSubstr("would request 9 CPUs, but it can have only 8"));
  ContainerRequest system = Request("system", "", "cpu", 3);
  system.annotations = {{"katalyst.kubewharf.io/qos_level", "system_cores"}};
  EXPECT_EQ(drive.Admit(system)->value, "") << "all CPUs";
}

TEST(CpuPluginTest, GivesANodeExclusivelyOnlyToARequestThatFillsItsShare) {
  Drive drive(Make("reserved-cpus: 0-1"));
  ContainerRequest request = Request("pod", "", "cpu", 18);
  request.annotations = {
      {"katalyst.kubewharf.io/qos_level", "dedicated_cores"},
      {"katalyst.kubewharf.io/memory_enhancement", R"({"numa_exclusive": "true"})"}};
  EXPECT_EQ(MessageOf(drive.plugin().Hints(request).status()),
            "cannot place container c0 of pod default/pod: numa_exclusive of annotation "
            "memory_enhancement needs 50% of NUMA nodes 0 (exclusive-node-percent), but it "
            "requests only 18 of 38 CPUs; request more, or remove numa_exclusive");
  EXPECT_EQ(drive.plugin().Allocate(request, {}).status().code(), StatusCode::kPermissionDenied);
  request.requests.Edit()["cpu"] = 19;
  EXPECT_TRUE(drive.Admit(request).ok());
}

TEST(CpuPluginTest, QuotesTheEndOfNoAnnotation) {
  Drive drive(Make(""));
  ContainerRequest request = Request("pod", "", "cpu", 1);
  const auto refusal = [&](const std::string& key, const std::string& value) {
    request.annotations = {{"katalyst.kubewharf.io/" + key, value}};
    return MessageOf(drive.plugin().Hints(request).status());
  };
  const std::string much(250'000, 'x');
  EXPECT_THAT(refusal("qos_level", much), HasSubstr("xx... (250000 bytes)' is not a QoS level"));
  EXPECT_LT(refusal("qos_level", much).size(), 500);
  EXPECT_THAT(
      refusal("cpu_enhancement", much),
      HasSubstr("xx... (250000 bytes)' has 250000 bytes, more than 4096; remove unused keys"));
  EXPECT_THAT(refusal("cpu_enhancement", R"({"a\n": "\u001b[2J)"),
              HasSubstr("'{\"a\\n\": \"\\u001b[2J' has a backslash"));
  EXPECT_THAT(refusal("qos_level", "a\x1b[2J"), HasSubstr("'a\\x1b[2J' is not a QoS level"));
}

struct PoolCase {
  std::string name;
  std::map<std::string, std::string> pools;
  std::string want;
};
class RejectedPoolsTest : public testing::TestWithParam<PoolCase> {};

TEST_P(RejectedPoolsTest, ChangesNothing) {
  Drive drive(Make(R"(
reserved-cpus: 0-1
pools:
  online: {cpus: "10-19", roles: [web]}
  offline: {cpus: "20-29"}
roles: {r: {}}
)"));
  ASSERT_TRUE(drive.Admit(Request("web", "web", "cpu", 1)).ok());
  ASSERT_EQ(drive.Admit(Request("own", "r", "cpu", 2))->value, "2-3");
  const std::string before = drive.plugin().SaveState();
  std::map<std::string, CpuSet> pools;
  for (const auto& [name, cpus] : GetParam().pools) {
    pools[name] = *CpuSet::Parse(cpus);
  }
  const Status status = drive.plugin().SetPools(pools);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr(GetParam().want));
  EXPECT_EQ(drive.plugin().SaveState(), before);
}

const PoolCase kPoolCases[] = {
    {"Unknown", {{"other", "50"}}, "the pools are offline, online"},
    {"OutsideMachine", {{"offline", "20-80"}}, "CPUs 80"},
    {"Reserved", {{"offline", "1,4"}}, "they are reserved"},
    {"Exclusive", {{"offline", "3-4"}}, "container c0 of pod own-uid owns them"},
    {"EachOther", {{"offline", "19-20"}}, "CPUs 19: pool"},
    {"EmptyInUse", {{"online", ""}}, "1 containers use it"},
    {"NothingLeft", {{"offline", "4-9,20-79"}}, "leave no CPU"},
    {"SecondIsWrong", {{"offline", "20"}, {"online", "80"}}, "CPUs 80"},
    {"DefaultIsComputed", {{"default", "5"}}, "it has the CPUs that other pools leave"},
};
INSTANTIATE_TEST_SUITE_P(Pools, RejectedPoolsTest, testing::ValuesIn(kPoolCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(CpuPluginTest, PoolsCanBeSetBackAsTheyWereReported) {
  Drive drive(Make(kThreeRoles));
  std::map<std::string, CpuSet> pools;
  for (const sdk::Pool& pool : drive.plugin().Pools()) {
    pools[pool.name] = pool.cpus;
  }
  EXPECT_TRUE(drive.plugin().SetPools(pools).ok());
}

TEST(CpuPluginTest, ReportsPoolsWithRolesAndContainers) {
  Drive drive(Make(kTwoPools));
  ASSERT_TRUE(drive.Admit(Request("pod1", "ETL", "cpu", 1)).ok());
  const std::vector<sdk::Pool> pools = drive.plugin().Pools();
  ASSERT_EQ(pools.size(), 3u);
  EXPECT_EQ(pools[0].name, "offline");
  EXPECT_EQ(ToString(pools[0].cpus), "38-39,78-79");
  EXPECT_THAT(pools[0].roles, testing::ElementsAre("ETL"));
  EXPECT_EQ(pools[0].containers, 1u);
  EXPECT_EQ(pools[2].name, "default");
  EXPECT_TRUE(pools[2].cpus.Empty());
}

TEST(CpuPluginTest, RepeatedRequestKeepsItsNodePreferred) {
  Drive drive(Make(kThreeRoles));
  const ContainerRequest request = Request("pod1", "reranker", "cpu", 10);
  ASSERT_TRUE(drive.Admit(request).ok());
  EXPECT_EQ(drive.plugin().Hints(request)->hints(),
            (std::vector<TopologyHint>{{.nodes = {0}, .preferred = true}}));
}

TEST(CpuPluginTest, OffersResourcesThatAreNotReserved) {
  const AllocatableResource resource = Make(kThreeRoles)->Allocatable();
  EXPECT_EQ(resource.capacity, 80);
  EXPECT_EQ(resource.allocatable, 76);
  EXPECT_EQ(resource.allocatable_by_node, (std::map<int, double>{{0, 38}, {1, 38}}));
  EXPECT_EQ(ToString(resource.allocatable_cpus), "2-39,42-79");
}

TEST(CpuPluginTest, RejectsConfigurationThatDoesNotFitMachine) {
  for (const char* text :
       {"reserved-cpus: 80-81", "pools: {a: {cpus: \"80-81\"}}",
        "reserved-cpus: \"3\"\npools: {a: {cpus: \"3\"}}", "pools: {a: {cpus: \"0-79\"}}"}) {
    EXPECT_EQ(MakeCpuPlugin(Config(text), ExampleMachine()).status().code(),
              StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(CpuPluginTest, LeavesOutConfiguredCpusThatMachineLost) {
  const auto plugin = Make("reserved-cpus: 0,80\npools: {a: {cpus: \"78-99\"}}");
  EXPECT_EQ(ToString(plugin->Allocatable().allocatable_cpus), "1-79");
  EXPECT_EQ(ToString(plugin->Pools()[0].cpus), "78-79");
}

}  // namespace
}  // namespace qrm::cpu::cpu_plugin_test
