// Pools near devices of the machine.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/cpu/devices.h"
#include "plugins/cpu/fit_config.h"
#include "plugins/rules/device_nodes.h"
#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::near_test {
namespace {

using test::Drive;
using test::Request;
using testing::ElementsAre;
using testing::HasSubstr;

/// TwoNodes with a NIC on node 1, another NIC without a known node, and a GPU on node 0.
Machine WithDevices() {
  MachineParts parts = TwoNodes().parts();
  parts.nics = {{.name = "eth0", .pci_address = "0000:3b:00.0", .node = 1},
                {.name = "eth1", .pci_address = "0000:3c:00.0", .node = std::nullopt}};
  parts.pci_devices = {{.address = "0000:17:00.0", .vendor = 0x10de, .device = 0x2330, .node = 0}};
  return Machine(std::move(parts));
}

/// The nodes of a pool of 8 CPUs with `place`, or why there is none.
std::string NodesOf(const std::string& place, const std::string& keys = "") {
  const auto fitting = FitCpuConfig(
      WithDevices(), Config(fmt::format("{{{}pools: {{p: {{size: {{fixed: 8}}, place: {{{}}}}}}}}}",
                                        keys, place)));
  return fitting.ok() ? ToString(WithDevices().NodesOf(fitting->config.pools.at("p").cpus))
                      : MessageOf(fitting.status());
}

class NearTest : public ElasticPlugins {
 protected:
  Drive StartNear(const std::string& place) {
    const std::string text = fmt::format(
        "{{rules: [{{select: {{role: p}}, pool: p}}, {{select: {{role: q}}, pool: q}}], pools: "
        "{{p: {{size: {{max: 60}}, place: {{near: eth0{}}}}}, q: {{size: {{max: 60}}, place: "
        "{{near: eth0, numa: one}}}}, default: {{size: {{min: 2}}}}}}}}",
        place);
    return Drive(MakeElastic(text, WithDevices()));
  }
  /// Pool p has another pod instead of pod a, and gives up spare CPUs for that.
  void ShrinkTo(int cpus, Drive& drive) {
    drive.RemovePod("a");
    Admit(drive, "b", "p", cpus);
    drive.Reconcile();
    clock_.Advance(std::chrono::seconds(31));
    drive.Reconcile();
    EXPECT_EQ(Size(drive, "p"), cpus);
  }
};

TEST_F(NearTest, IsOnTheNodesOfTheDevicesThatItNames) {
  EXPECT_EQ(NodesOf("near: eth0"), "1");
  EXPECT_EQ(NodesOf("near: ['0000:3b:*']"), "1");
  EXPECT_EQ(NodesOf("near: ['10de:*']"), "0");
  EXPECT_EQ(NodesOf("near: eth0, numa: one, require: numa"), "1");
  EXPECT_EQ(NodesOf("near: ['10de:*', eth0], numa: even"), "0-1");
}

TEST_F(NearTest, DevicesThatAreListedAreAllThatThereAre) {
  EXPECT_EQ(NodesOf("near: gpu*", "devices: {gpu7: 1, disk: '0'}, "), "1");
  EXPECT_THAT(NodesOf("near: eth0, require: near", "devices: {gpu7: 1}, "),
              HasSubstr("name one of gpu7, or list it under devices"));
}

TEST_F(NearTest, IsRejectedWhereItIsRequiredAndNoSuchDeviceIsThere) {
  EXPECT_THAT(NodesOf("near: eth1, require: near"),
              HasSubstr("pool p is to be near eth1, but no such device is on a known NUMA node "
                        "with CPUs; name one of 0000:17:00.0, 0000:3b:00.0, 10de:2330, eth0"));
  EXPECT_THAT(NodesOf("near: gpu, require: near", "devices: {gpu: 7}, "),
              HasSubstr("pool p is to be near gpu"));
}

TEST_F(NearTest, SaysThatAWishHasNoDeviceAndGoesAnywhere) {
  const auto fitting =
      FitCpuConfig(WithDevices(), Config("pools: {p: {size: {fixed: 8}, place: {near: eth1}}}"));
  ASSERT_TRUE(fitting.ok()) << fitting.status();
  EXPECT_THAT(fitting->repairs,
              ElementsAre(HasSubstr("so the pool can be anywhere; name one of 0000:17:00.0")));
}

TEST_F(NearTest, WishGoesElsewhereWhereItsNodeIsFullAndLeavesThatFirst) {
  Drive drive = StartNear("");
  Admit(drive, "a", "p", 40);
  const CpuSet far = Pool(drive, "p") & TwoNodes().CpusOf({0});
  EXPECT_GE(far.Count(), 8);
  ShrinkTo(20, drive);
  EXPECT_FALSE(Pool(drive, "p").Intersects(TwoNodes().CpusOf({0})));
}

TEST_F(NearTest, GivesUpFarCpusFirstEvenIfTheyAreTheMost) {
  Drive drive = StartNear("");
  Admit(drive, "q", "q", 20);
  ASSERT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "q"))), "1");
  Admit(drive, "a", "p", 30);
  ASSERT_EQ((Pool(drive, "p") & TwoNodes().CpusOf({0})).Count(), 18);
  ShrinkTo(10, drive);
  EXPECT_FALSE(Pool(drive, "p").Intersects(TwoNodes().CpusOf({0})));
}

TEST_F(NearTest, RequiredIsNowhereElse) {
  Drive drive = StartNear(", require: near");
  Admit(drive, "a", "p", 24);
  EXPECT_FALSE(Pool(drive, "p").Intersects(TwoNodes().CpusOf({0})));
  EXPECT_THAT(MessageOf(drive.Admit(Request("b", "p", "cpu", 12)).status()),
              HasSubstr("pool p wants 36 CPUs of cores near eth0 ("));
}

TEST_F(NearTest, WithOneNodeItsHintsAreThoseOfTheDevicesNode) {
  Drive drive(
      MakeElastic("{rules: [{select: {role: p}, pool: p}], pools: {p: {size: {max: 60}, "
                  "place: {near: eth0, numa: one, require: [numa, near]}}}}",
                  WithDevices()));
  const auto hints = drive.plugin().Hints(Request("a", "p", "cpu", 4));
  ASSERT_TRUE(hints.ok()) << hints.status();
  ASSERT_EQ(hints->hints().size(), 1U);
  EXPECT_EQ(ToString(hints->hints().front().nodes), "1");
}

TEST_F(NearTest, OneNodeThatIsPreferredIsTheDevices) {
  Drive drive(
      MakeElastic("{rules: [{select: {role: p}, pool: p}], pools: {p: {size: {max: 60}, "
                  "place: {near: eth0, numa: one, require: numa}}}}",
                  WithDevices()));
  Admit(drive, "a", "p", 4);
  EXPECT_EQ(ToString(TwoNodes().NodesOf(Pool(drive, "p"))), "1");
}

/// The third worked example.
constexpr char kEngines[] =
    "{rules: [{select: {role: engine}, pool: llm}], pools: {llm: {size: {min: 8, max: 32}, "
    "instances: {by: pod, fill: balanced}, place: {numa: one, near: "
    "['nvidia.com/*'], threads: one-per-core, require: [near]}}}}";

/// `pod` of kEngines, whose GPU is on `nodes`.
ContainerRequest Engine(const std::string& pod, double cpus, const NumaMask& nodes) {
  ContainerRequest request = Request(pod, "engine", "cpu", cpus);
  request.annotations.Edit()[rules::kDeviceNodesAnnotation] =
      rules::ToText({{request.key.container, {{"nvidia.com/gpu", nodes}, {"a.io/other", {0, 1}}}}});
  return request;
}

TEST_F(NearTest, AnInstanceIsWhereItsContainersDevicesAre) {
  Drive drive = Start(kEngines);
  const auto first = drive.Admit(Engine("a", 12, {1}));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->value, "16-27");
  EXPECT_EQ(ToString(Pool(drive, "llm/default/a")), "16-27,48-59");
  EXPECT_THAT(MessageOf(drive.Admit(Engine("b", 12, {1})).status()),
              HasSubstr("pool llm/default/b wants 24 CPUs of cores near nvidia.com/* (node 0: 0 of "
                        "0 left, node 1: 8 of 32 left)"));
  const auto other = drive.Admit(Engine("c", 12, {0}));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->value, "0-11");
}

TEST_F(NearTest, AnInstanceStaysByItsDevicesThroughARestart) {
  Drive drive = Start(kEngines);
  ASSERT_TRUE(drive.Admit(Engine("a", 12, {1})).ok());
  Drive restarted = Restart(kEngines, drive);
  restarted.Reconcile();
  EXPECT_EQ(ToString(Pool(restarted, "llm/default/a")), "16-27,48-59");
  EXPECT_FALSE(restarted.Admit(Engine("b", 12, {1})).ok());
}

TEST_F(NearTest, WithoutADeviceAnInstanceThatRequiresOneIsRejected) {
  Drive drive = Start(kEngines);
  EXPECT_THAT(MessageOf(drive.Admit(Request("a", "engine", "cpu", 12)).status()),
              HasSubstr("pool llm/default/a wants CPUs near nvidia.com/*, but kubelet reported no "
                        "such device of the pod on a known NUMA node; have the pod request one, "
                        "or require less"));
}

TEST_F(NearTest, AnInstanceThatOnlyPrefersItsDevicesGoesElsewhereWhereTheirNodeIsFull) {
  std::string text = kEngines;
  text.replace(text.find("[near]"), 6, "[numa]");
  Drive drive = Start(text);
  ASSERT_TRUE(drive.Admit(Engine("a", 12, {1})).ok());
  const auto far = drive.Admit(Engine("b", 12, {1}));
  ASSERT_TRUE(far.ok()) << far.status();
  EXPECT_EQ(far->value, "0-11");
}

TEST_F(NearTest, WithoutADeviceAnInstanceThatOnlyPrefersOneGoesAnywhere) {
  std::string text = kEngines;
  text.replace(text.find("[near]"), 6, "[numa]");
  Drive drive = Start(text);
  EXPECT_TRUE(drive.Admit(Request("a", "engine", "cpu", 12)).ok());
}

TEST_F(NearTest, WithAnInstanceForEachContainerOnlyItsOwnDevicesCount) {
  std::string text = kEngines;
  text.replace(text.find("by: pod"), 7, "by: container");
  Drive drive = Start(text);
  ContainerRequest request = Engine("a", 4, {1});
  request.key.container = "other";
  EXPECT_FALSE(drive.Admit(request).ok());
}

TEST_F(NearTest, ResourcesAreForPoolsWithInstancesAndNotBesideDevicesOfTheMachine) {
  const auto refused = [](const std::string& pool) {
    const auto section =
        config::Section::Parse("{pools: {p: {size: {max: 4}, " + pool + "}}}", "cpu.yaml");
    const auto config = ParseCpuConfig(*section);
    return config.ok() ? "" : MessageOf(config.status());
  };
  EXPECT_THAT(
      refused("place: {near: nvidia.com/gpu}"),
      HasSubstr("near has 'nvidia.com/gpu', a resource, but containers of the pool may have "
                "devices on different nodes; give the pool instances"));
  EXPECT_THAT(
      refused("instances: {by: pod}, place: {near: [nvidia.com/gpu, eth0]}"),
      HasSubstr("near has 'nvidia.com/gpu' and 'eth0', but one is a resource and the other a "
                "device of the machine; name devices of one kind"));
}

TEST_F(NearTest, ReportsTheDevicesThatPoolsName) {
  EXPECT_EQ(NamedDevices(WithDevices(),
                         Config("pools: {p: {size: {min: 1}, place: {near: ['10de:*', eth*]}}}")),
            "{\"10de:2330\": \"0\", \"eth0\": \"1\"}");
  EXPECT_EQ(NamedDevices(WithDevices(), Config("pools: {p: {size: {min: 1}}}")), "");
  EXPECT_EQ(NamedDevices(WithDevices(), Config("{devices: {eth0: 0}, pools: {p: {size: {min: 1}, "
                                               "place: {near: eth0}}}}")),
            "");
}

}  // namespace
}  // namespace qrm::cpu::near_test
