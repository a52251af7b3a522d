// The memory plugin as the SDK drives it: the proposal's examples, its books, restarts.
#include "plugins/memory/memory_plugin.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::memory::memory_plugin_test {
namespace {

using test::Drive;
using test::ExampleMachine;
using test::Request;
using testing::HasSubstr;

constexpr double kGiB = 1073741824.0;
constexpr char kThreeRoles[] = R"(
reserved-memory: 500Mi
roles:
  storage-service: {}
  reranker: {}
  numa-enhancement: {share-numa-with: [numa-enhancement]}
)";

StatusOr<MemoryPluginConfig> Read(const std::string& text) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Parse(text, "memory.yaml"));
  return ParseMemoryConfig(section);
}

std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& text,
                                          const Machine& machine = ExampleMachine()) {
  const StatusOr<MemoryPluginConfig> config = Read(text);
  EXPECT_TRUE(config.ok()) << config.status();
  auto plugin = MakeMemoryPlugin(*config, machine);
  EXPECT_TRUE(plugin.ok()) << plugin.status();
  return *std::move(plugin);
}

TEST(MemoryExampleTest, StartsWithTheStateOfTheProposal) {
  EXPECT_EQ(Make(kThreeRoles)->ExportState({}), R"({
    "machineState": {
        "memory": {
            "0": {
                "Allocated": "0",
                "allocatable": "237182648320",
                "free": "237182648320",
                "pod_entries": {},
                "systemReserved": "524288000",
                "total": "237706936320"
            },
            "1": {
                "Allocated": "0",
                "allocatable": "237282263040",
                "free": "237282263040",
                "pod_entries": {},
                "systemReserved": "524288000",
                "total": "237806551040"
            }
        }
    },
    "pod_resource_entries": {}
})");
}

TEST(MemoryExampleTest, SecondExampleKeepsRolesOnSeparateNodes) {
  Drive drive(Make(kThreeRoles));
  const auto pod1 = drive.Admit(Request("pod1", "storage-service", "memory", 40 * kGiB));
  ASSERT_TRUE(pod1.ok()) << pod1.status();
  EXPECT_EQ(pod1->oci_property, "CpusetMems");
  EXPECT_EQ(pod1->value, "0");
  EXPECT_EQ(pod1->quantity, 40 * kGiB);
  EXPECT_EQ(pod1->hints, (std::vector<TopologyHint>{{.nodes = {0}, .preferred = true}}));

  const auto hints = drive.plugin().Hints(Request("pod2", "reranker", "memory", 20 * kGiB));
  ASSERT_TRUE(hints.ok()) << hints.status();
  EXPECT_EQ(hints->hints(), (std::vector<TopologyHint>{{.nodes = {1}, .preferred = true}}));
  EXPECT_EQ(drive.Admit(Request("pod2", "reranker", "memory", 20 * kGiB))->value, "1");
}

TEST(MemoryExampleTest, ThirdExampleSharesNodeWithTheRole) {
  Drive drive(Make(kThreeRoles));
  EXPECT_EQ(drive.Admit(Request("filler", "storage-service", "memory", 40 * kGiB))->value, "0");
  EXPECT_EQ(drive.Admit(Request("pod1", "numa-enhancement", "memory", 20 * kGiB))->value, "1");
  EXPECT_EQ(drive.Admit(Request("pod2", "numa-enhancement", "memory", 20 * kGiB))->value, "1");
}

TEST(MemoryPluginTest, CountsAllocationsAndReleases) {
  Drive drive(Make(kThreeRoles));
  const std::string before = drive.plugin().ExportState({});
  ASSERT_TRUE(drive.Admit(Request("pod1", "reranker", "memory", 1e9)).ok());
  const std::string given = drive.plugin().ExportState(drive.grants());
  EXPECT_THAT(given, HasSubstr(R"("Allocated": "1000000000")"));
  EXPECT_THAT(given, HasSubstr(R"("free": "236182648320")"));
  EXPECT_THAT(given, HasSubstr(R"("c0": "1000000000")"));
  EXPECT_THAT(given, HasSubstr(R"("pod_role": "reranker")"));
  drive.RemovePod("pod1");
  EXPECT_EQ(drive.plugin().ExportState(drive.grants()), before);
}

TEST(MemoryPluginTest, RecordsUnboundContainerWithoutKnobOrBooks) {
  Drive drive(Make(kThreeRoles));
  const auto pod = drive.Admit(Request("pod1", "web", "memory", 1e9));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->oci_property, "");
  EXPECT_EQ(pod->quantity, 1e9);
  EXPECT_TRUE(pod->amount_by_node.empty());
  EXPECT_TRUE(drive.plugin().Hints(Request("pod2", "web", "memory", 1e9))->IsNoPreference());
  EXPECT_THAT(drive.plugin().ExportState(drive.grants()), HasSubstr(R"("Allocated": "0")"));
}

TEST(MemoryPluginTest, BindsMainContainersOnly) {
  Drive drive(Make(kThreeRoles));
  ContainerRequest request = Request("pod1", "reranker", "memory", 1e9);
  for (const ContainerType type :
       {ContainerType::kInit, ContainerType::kSidecar, ContainerType::kEphemeral}) {
    request.type = type;
    EXPECT_EQ(drive.Admit(request)->oci_property, "");
  }
}

TEST(MemoryPluginTest, BindsNoContainerForARequestOfNothing) {
  Drive drive(Make(kThreeRoles));
  EXPECT_TRUE(drive.plugin().Hints(Request("pod1", "reranker", "memory", 0))->IsNoPreference());
  EXPECT_EQ(drive.Admit(Request("pod1", "reranker", "memory", 0))->value, "");
  EXPECT_EQ(drive.Admit(Request("pod2", "storage-service", "memory", 1e9))->value, "0")
      << "the node is free";
}

TEST(MemoryPluginTest, RejectsWithFreeBytesAndOpponentsByName) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("pod1", "storage-service", "memory", 1e9)).ok());
  const Status status = drive.Admit(Request("pod2", "reranker", "memory", 300e9)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status),
            "cannot place container c0 of pod default/pod2: no allowed NUMA nodes have "
            "300000000000 bytes of memory for reranker; request less or delete a pod (node 0: "
            "occupied by storage-service, node 1: 237282263040 free)");
}

TEST(MemoryPluginTest, RejectsHintWhereItDoesNotFit) {
  Drive drive(Make(kThreeRoles));
  ASSERT_TRUE(drive.Admit(Request("pod1", "storage-service", "memory", 1e9)).ok());
  const auto pod =
      drive.plugin().Allocate(Request("pod2", "reranker", "memory", 1e9), {.nodes = {0}});
  EXPECT_EQ(pod.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(pod.status()), HasSubstr("nodes of 0"));
}

TEST(MemoryPluginTest, RejectsAmountThatIsNotANumberOfBytes) {
  Drive drive(Make(kThreeRoles));
  for (const double amount : {-1.0, 1e300, std::nan("")}) {
    EXPECT_EQ(drive.Admit(Request("pod1", "reranker", "memory", amount)).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(drive.Admit(Request("pod1", "", "memory", amount)).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST(MemoryPluginTest, FewestRoleFillsOneNodeAfterAnother) {
  Drive drive(Make("roles: {r: {numa: fewest}}"));
  const auto pod = drive.Admit(Request("pod1", "r", "memory", 300e9));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->value, "0-1");
  EXPECT_EQ(pod->amount_by_node,
            (std::map<uint64_t, uint64_t>{{0, 237706936320}, {1, 62293063680}}));
}

TEST(MemoryPluginTest, EvenRoleTakesSameShareOfEachNode) {
  Drive drive(Make("roles: {r: {numa: even}}"));
  const auto pod = drive.Admit(Request("pod1", "r", "memory", 300e9));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->amount_by_node,
            (std::map<uint64_t, uint64_t>{{0, 150000000000}, {1, 150000000000}}));
}

TEST(MemoryPluginTest, TakesTheWiderHintThatTheManagerChose) {
  Drive drive(Make("roles: {r: {numa: fewest}}"));
  const auto pod = drive.plugin().Allocate(Request("pod1", "r", "memory", 1e9), {.nodes = {0, 1}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->value, "0-1");
}

TEST(MemoryPluginTest, WiderContainerMakesRoomForAContainerThatNeedsItsNode) {
  Drive drive(
      Make("roles: {wide: {numa: fewest, share-numa-with: ['*']}, "
           "near: {share-numa-with: ['*']}}"));
  const ContainerRequest wide = Request("pod1", "wide", "memory", 240e9);
  drive.Keep(wide, drive.plugin().Allocate(wide, {.nodes = {0, 1}}));
  const ContainerRequest near = Request("pod2", "near", "memory", 200e9);
  EXPECT_EQ(drive.plugin().Hints(near)->hints(),
            (std::vector<TopologyHint>{{.nodes = {0}, .preferred = true},
                                       {.nodes = {1}, .preferred = true}}));
  drive.Keep(near, drive.plugin().Allocate(near, {.nodes = {0}, .preferred = true}));
  EXPECT_EQ(drive.Value("pod2"), "0");
  drive.Reconcile();
  EXPECT_EQ(drive.Value("pod1"), "0-1") << "its memory may be anywhere there";
  EXPECT_EQ(drive.Of("pod1").amount_by_node,
            (std::map<uint64_t, uint64_t>{{0, 37706936320}, {1, 202293063680}}));
  EXPECT_EQ(
      MessageOf(drive.Admit(Request("pod3", "near", "memory", 36e9)).status()),
      "cannot place container c0 of pod default/pod3: no allowed NUMA nodes have 36000000000 "
      "bytes of memory for near; request less or delete a pod (node 0: 35513487360 free, node 1: "
      "35513487360 free, nodes 0-1 together: 35513487360)");
}

constexpr char kMoves[] =
    "roles: {r: {moves: true, share-numa-with: ['*']}, "
    "fewest: {numa: fewest, moves: true, share-numa-with: ['*']}, stays: {share-numa-with: ['*']}}";

TEST(MemoryPluginTest, ContainerThatMayMoveGrowsOntoANodeThatHasRoom) {
  Drive drive(Make(kMoves));
  ASSERT_EQ(drive.Admit(Request("pod1", "r", "memory", 100e9))->value, "0");
  ASSERT_EQ(drive.Admit(Request("pod2", "r", "memory", 120e9))->value, "0");
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "memory", 110e9))->value, "0") << "it has room there";
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "memory", 130e9))->value, "1");
  EXPECT_EQ(drive.Admit(Request("pod3", "r", "memory", 117e9))->value, "0") << "it left that free";
  EXPECT_EQ(drive.Admit(Request("pod1", "r", "memory", 100e9))->value, "1")
      << "no container moves without need";
}

TEST(MemoryPluginTest, ContainerThatMayMoveKeepsItsNodesAmongThoseThatItGrowsOnto) {
  MachineParts parts;
  for (const int node : {0, 1, 2}) {
    parts.nodes.push_back({.id = node, .memory_bytes = uint64_t{8} << 30});
  }
  Drive drive(Make(kMoves, Machine(std::move(parts))));
  ASSERT_EQ(drive.Admit(Request("pod1", "stays", "memory", 7 * kGiB))->value, "0");
  ASSERT_EQ(drive.Admit(Request("pod2", "stays", "memory", 7 * kGiB))->value, "1");
  ASSERT_EQ(drive.Admit(Request("pod3", "fewest", "memory", 2 * kGiB))->value, "2");
  drive.RemovePod("pod1");
  drive.RemovePod("pod2");
  EXPECT_EQ(drive.Admit(Request("pod3", "fewest", "memory", 12 * kGiB))->value, "0,2");
}

TEST(MemoryPluginTest, ContainerThatMayNotMoveKeepsItsMemoryWhereItsNodeIsFull) {
  Drive drive(Make(kMoves));
  ASSERT_EQ(drive.Admit(Request("pod1", "stays", "memory", 100e9))->value, "0");
  ASSERT_EQ(drive.Admit(Request("pod2", "stays", "memory", 120e9))->value, "0");
  EXPECT_EQ(drive.Admit(Request("pod1", "stays", "memory", 130e9)).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(drive.Value("pod1"), "0");
}

TEST(MemoryPluginTest, ContainerThatMayMoveStaysWhereNoNodeHasRoom) {
  Drive drive(Make(kMoves));
  ASSERT_EQ(drive.Admit(Request("pod1", "r", "memory", 100e9))->value, "0");
  const Status refused = drive.Admit(Request("pod1", "r", "memory", 240e9)).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(drive.Admit(Request("pod2", "r", "memory", 138e9))->value, "1") << "it still holds 100";
}

/// Two nodes of 8 GiB, of which hugepages take 2 GiB on node 0.
Machine WithHugepages() {
  MachineParts parts;
  parts.nodes = {{.id = 0, .memory_bytes = uint64_t{8} << 30, .hugepages = {{1 << 30, 2}}},
                 {.id = 1, .memory_bytes = uint64_t{8} << 30}};
  return Machine(std::move(parts));
}

TEST(MemoryPluginTest, BindsRolesWhereTheirHugepagesAre) {
  Drive drive(Make("roles: {r: {share-numa-with: ['*']}}", WithHugepages()));
  ContainerRequest request = Request("pod1", "r", "memory", kGiB);
  request.requests.Edit()["hugepages-1Gi"] = 2 * kGiB;
  EXPECT_EQ(drive.plugin().Hints(request)->hints(),
            (std::vector<TopologyHint>{{.nodes = {0}, .preferred = true}}));
  ASSERT_TRUE(drive.Admit(request).ok());
  EXPECT_THAT(drive.plugin().ExportState({}), HasSubstr(R"("c0": "2147483648")"));
  Drive after(Make("roles: {r: {share-numa-with: ['*']}}", WithHugepages()), drive);
  EXPECT_EQ(after.plugin().ExportState({}), drive.plugin().ExportState({}));
  request.key.pod_uid = "other";
  EXPECT_THAT(MessageOf(after.Admit(request).status()),
              HasSubstr("node 0: 0 of hugepages-1Gi and 5368709120 of memory free"));
}

TEST(MemoryPluginTest, PrefersTheFewestNodesThatHaveAllTypesTogether) {
  MachineParts parts;
  parts.nodes = {{.id = 0, .memory_bytes = uint64_t{4} << 30, .hugepages = {{1 << 30, 3}}},
                 {.id = 1, .memory_bytes = uint64_t{4} << 30}};
  Drive drive(Make("roles: {r: {numa: fewest}}", Machine(std::move(parts))));
  ContainerRequest request = Request("pod1", "r", "memory", 3 * kGiB);
  request.requests.Edit()["hugepages-1Gi"] = 2 * kGiB;
  EXPECT_EQ(drive.plugin().Hints(request)->hints(),
            (std::vector<TopologyHint>{{.nodes = {0, 1}, .preferred = true}}));
}

TEST(MemoryPluginTest, BindsSharedPodsThatAskForItIfTheConfigurationSaysSo) {
  ContainerRequest request = Request("pod1", "", "memory", kGiB);
  request.annotations = {
      {"katalyst.kubewharf.io/qos_level", "shared_cores"},
      {"katalyst.kubewharf.io/memory_enhancement", R"({"numa_binding": "true"})"},
  };
  Drive bound(Make("bind-shared: true"));
  const auto given = bound.Admit(request);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->value + " " + given->decided_by, "0 annotation memory_enhancement");
  Drive unbound(Make(""));
  EXPECT_EQ(unbound.Admit(request)->value, "");
}

ContainerRequest Exclusive(double bytes) {
  ContainerRequest request = Request("pod1", "", "memory", bytes);
  request.annotations = {
      {"katalyst.kubewharf.io/qos_level", "dedicated_cores"},
      {"katalyst.kubewharf.io/memory_enhancement",
       R"({"numa_binding": "true", "numa_exclusive": "true"})"},
  };
  return request;
}

TEST(MemoryPluginTest, GivesANodeExclusivelyOnlyToARequestThatFillsItsShare) {
  Drive drive(Make(""));
  const Status refused = drive.plugin().Hints(Exclusive(118e9)).status();
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(MessageOf(refused),
            "cannot place container c0 of pod default/pod1: numa_exclusive of annotation "
            "memory_enhancement needs 50% of NUMA nodes 0 (exclusive-node-percent), but it "
            "requests only 118000000000 of 237706936320 bytes of memory; request more, or remove "
            "numa_exclusive");
  EXPECT_EQ(drive.plugin().Allocate(Exclusive(118e9), {.nodes = {0}}).status().code(),
            StatusCode::kPermissionDenied);
  EXPECT_TRUE(drive.Admit(Exclusive(119e9)).ok());
}

TEST(MemoryPluginTest, GivesNoSecondNodeExclusivelyForALittleMore) {
  Drive drive(Make("exclusive-node-percent: 80"));
  EXPECT_THAT(MessageOf(drive.Admit(Exclusive(250e9)).status()), HasSubstr("NUMA nodes 0-1"));
  EXPECT_EQ(drive.Admit(Exclusive(400e9))->value, "0-1");
}

TEST(MemoryPluginTest, AsksForNoShareWhereTheConfigurationSaysSo) {
  Drive drive(Make("exclusive-node-percent: 0"));
  EXPECT_EQ(drive.Admit(Exclusive(1))->value, "0");
}

TEST(MemoryPluginTest, RulesPlaceSelectedContainersAsIfTheyHadTheRole) {
  Drive drive(
      Make("roles: {db: {numa: one}, web: {numa: one, share-numa-with: [web]}}\n"
           "rules: [{select: {label: {app: postgres}}, role: db}]"));
  ContainerRequest request = Request("pod1", "web", "memory", 1e9);
  request.labels = {{"app", "postgres"}};
  const auto database = drive.Admit(request);
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_EQ(database->value, "0");
  EXPECT_EQ(database->decided_by, "rules[0] (memory.yaml:2)");
  EXPECT_EQ(drive.Admit(Request("pod2", "web", "memory", 1e9))->value, "1") << "db is on node 0";
  Drive after(Make("roles: {db: {numa: one}, web: {numa: one, share-numa-with: [web]}}\n"
                   "rules: [{select: {label: {app: postgres}}, role: db}]"),
              drive);
  EXPECT_THAT(MessageOf(after.plugin().Hints(Request("pod3", "other", "memory", 1)).status()), "");
  EXPECT_EQ(after.Admit(Request("pod3", "web", "memory", 1e9))->value, "1");
}

TEST(MemoryPluginTest, QosAnnotationsBindDedicatedPods) {
  Drive drive(Make(""));
  ContainerRequest request = Exclusive(120e9);
  EXPECT_EQ(drive.Admit(request)->value, "0");
  request.key.pod_uid = "other";
  request.pod_name = "other";
  EXPECT_EQ(drive.Admit(request)->value, "1") << "exclusive on its node";
}

TEST(MemoryPluginTest, StaticBindsGuaranteedContainers) {
  Drive drive(Make("static: true"));
  ContainerRequest request = Request("pod1", "", "memory", 1e9);
  EXPECT_EQ(drive.Admit(request)->value, "");
  request.native_qos_class = "Guaranteed";
  EXPECT_EQ(drive.Admit(request)->value, "0");
}

ContainerRequest Guaranteed(const std::string& pod, ContainerType type, double gibibytes) {
  ContainerRequest request = Request(pod, "", "memory", gibibytes * kGiB);
  request.key.container = std::string(ToString(type));
  request.type = type;
  request.native_qos_class = "Guaranteed";
  return request;
}

TEST(MemoryStaticTest, KeepsGroupsOfNodesApart) {
  Drive drive(Make("static: true", WithHugepages()));
  EXPECT_EQ(drive.Admit(Guaranteed("wide", ContainerType::kMain, 9))->value, "0-1");
  EXPECT_EQ(drive.Admit(Guaranteed("other", ContainerType::kMain, 2))->value, "0-1");
  drive.RemovePod("wide");
  drive.RemovePod("other");
  EXPECT_EQ(drive.Admit(Guaranteed("narrow", ContainerType::kMain, 2))->value, "0");
  EXPECT_THAT(MessageOf(drive.Admit(Guaranteed("wide", ContainerType::kMain, 9)).status()),
              HasSubstr("no allowed NUMA nodes have 9663676416 bytes of memory"));
}

TEST(MemoryStaticTest, PlacesHugepagesWithTheMemory) {
  Drive drive(Make("static: true", WithHugepages()));
  ContainerRequest request = Guaranteed("pod1", ContainerType::kMain, 1);
  request.requests.Edit()["hugepages-1Gi"] = 2 * kGiB;
  EXPECT_EQ(drive.Admit(request)->value, "0");
  request = Guaranteed("pod2", ContainerType::kMain, 1);
  request.requests.Edit()["hugepages-1Gi"] = kGiB;
  EXPECT_THAT(MessageOf(drive.Admit(request).status()),
              HasSubstr("node 0: 0 of hugepages-1Gi and 5368709120 of memory free"));
}

TEST(MemoryStaticTest, LaterContainersUseTheMemoryOfInitContainersAgain) {
  Drive before(Make("static: true", WithHugepages()));
  ASSERT_TRUE(before.Admit(Guaranteed("pod", ContainerType::kInit, 5)).ok());
  EXPECT_EQ(before.Admit(Guaranteed("pod", ContainerType::kMain, 4))->value, "0");
  EXPECT_THAT(before.plugin().ExportState({}), HasSubstr(R"("Allocated": "5368709120")"));
  Drive after(Make("static: true", WithHugepages()), before);
  EXPECT_EQ(after.plugin().ExportState({}), before.plugin().ExportState({}));
  EXPECT_EQ(after.Admit(Guaranteed("pod", ContainerType::kSidecar, 1))->value, "0");
}

TEST(MemoryStaticTest, ReservesHugepages) {
  Drive drive(Make("{static: true, reserved-memory: {0: {memory: 1Gi, hugepages-1Gi: 1Gi}}}",
                   WithHugepages()));
  EXPECT_EQ(drive.plugin().Allocatable().allocatable_by_node.at(0), 5 * kGiB);
  EXPECT_EQ(drive.plugin().AllocatableBeside().at("hugepages-1Gi").allocatable_by_node.at(0), kGiB);
  ContainerRequest request = Guaranteed("pod", ContainerType::kMain, 1);
  request.requests.Edit()["hugepages-1Gi"] = 2 * kGiB;
  EXPECT_FALSE(drive.Admit(request).ok());
}

TEST(MemoryRestartTest, KeepsItsBooks) {
  Drive before(Make(kThreeRoles));
  ASSERT_TRUE(before.Admit(Request("pod1", "storage-service", "memory", 1e9)).ok());
  ASSERT_TRUE(before.Admit(Request("pod2", "web", "memory", 1e9)).ok());
  Drive after(Make(kThreeRoles), before);
  EXPECT_EQ(after.plugin().ExportState(after.grants()),
            before.plugin().ExportState(before.grants()));
  EXPECT_EQ(after.Admit(Request("pod3", "reranker", "memory", 1e9))->value, "1");
}

TEST(MemoryRestartTest, CountsNodeThatShrankBelowItsAllocationsAsFull) {
  Drive before(Make(kThreeRoles));
  ASSERT_TRUE(before.Admit(Request("pod1", "numa-enhancement", "memory", 200e9)).ok());
  Drive after(Make(kThreeRoles, ExampleMachine().WithNodeMemory({{0, 100000000000}})), before);
  EXPECT_THAT(after.plugin().ExportState({}), HasSubstr(R"("free": "0")"));
  EXPECT_EQ(after.Admit(Request("pod2", "numa-enhancement", "memory", 1e9))->value, "1");
}

TEST(MemoryPluginTest, OffersResourcesThatAreNotReserved) {
  const AllocatableResource resource = Make(kThreeRoles)->Allocatable();
  EXPECT_EQ(resource.capacity, 237706936320.0 + 237806551040.0);
  EXPECT_EQ(resource.allocatable_by_node.at(0), 237182648320.0);
}

TEST(MemoryConfigTest, ReadsReservationByNode) {
  const StatusOr<MemoryPluginConfig> config = Read("reserved-memory: {0: 1Gi, 1: 2Gi}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->reserved_bytes, (std::map<int, MemoryBytes>{{0, {{"memory", 1073741824}}},
                                                                {1, {{"memory", 2147483648}}}}));
}

TEST(MemoryConfigTest, RejectsReservationOfATypeThatIsNotMemory) {
  EXPECT_THAT(MessageOf(Read("reserved-memory: {0: {cpu: 1}}").status()),
              HasSubstr("write memory or hugepages-2Mi"));
}

TEST(MemoryConfigTest, RejectsMistakesWithTheirLocation) {
  for (const char* text :
       {"reserved: 1", "reserved-memory: much", "reserved-memory: {a: 1}",
        "roles: {a: {whole-cores: true}}", "static: 3", "roles: {a: {share-numa-with: [b]}}",
        "exclusive-node-percent: 101", "rules: [{select: {role: a}, role: b}]",
        "{roles: {a: {}}, rules: [{select: {cpu: whole}, role: a}]}",
        "{roles: {a: {}}, rules: [{pool: a}]}"}) {
    const Status status = Read(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr("cannot read memory.yaml:1"));
  }
}

TEST(MemoryConfigTest, RejectsReservationOnMissingNode) {
  EXPECT_EQ(MakeMemoryPlugin(*Read("reserved-memory: {2: 1Gi}"), ExampleMachine()).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(MemoryConfigTest, LeavesOutReservationOnANodeThatIsGone) {
  EXPECT_TRUE(MakeMemoryPlugin(*Read("reserved-memory: {1: 1Gi, 2: 1Gi}"), ExampleMachine()).ok());
}

}  // namespace
}  // namespace qrm::memory::memory_plugin_test
