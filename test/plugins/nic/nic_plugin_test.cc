// The nic plugin as the SDK drives it: the proposal's third example, sharing, bandwidth, restarts.
#include "plugins/nic/nic_plugin.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/nic/state.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::nic::nic_plugin_test {
namespace {

using test::Drive;
using test::ExampleMachine;
using test::Request;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Optional;

constexpr char kExample[] = R"(
nics:
  - {interface: eth0, numa-node: 0, ipv6: "fdbd:dc05:3:154::20"}
  - {interface: eth1, numa-node: 1, ipv6: "fdbd:dc05:3:155::20", netns: /var/run/netns/ns1}
roles:
  numa-enhancement: {numa: required}
)";

StatusOr<NicPluginConfig> Read(const std::string& text) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Parse(text, "nic.yaml"));
  return ParseNicConfig(section);
}

std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& text,
                                          const Machine& machine = ExampleMachine(),
                                          const NicFacts& facts = {},
                                          std::unique_ptr<FactsWatch> watch = nullptr) {
  const StatusOr<NicPluginConfig> config = Read(text);
  EXPECT_TRUE(config.ok()) << config.status();
  auto plugin = MakeNicPlugin(*config, machine, facts, std::move(watch));
  EXPECT_TRUE(plugin.ok()) << plugin.status();
  return *std::move(plugin);
}

/// What the kernel reports of a NIC without a fault.
InterfaceFacts Healthy(const std::string& ipv4) {
  return {.up = true, .has_link = true, .ipv4 = {ipv4}};
}

NicFacts Host(std::map<std::string, InterfaceFacts> interfaces) {
  return {{"", {.interfaces = std::move(interfaces)}}};
}

std::vector<TopologyHint> Preferred(std::initializer_list<int> nodes) {
  std::vector<TopologyHint> hints;
  for (const int node : nodes) {
    hints.push_back({.nodes = {node}, .preferred = true});
  }
  return hints;
}

TEST(NicExampleTest, StartsWithTheStateOfTheProposal) {
  EXPECT_EQ(Make(kExample)->ExportState({}), R"({
    "machineState": {
        "0": {
            "nics": [
                {
                    "interface_name": "eth0",
                    "nuam_node": 0,
                    "address": {
                        "ipv6": "fdbd:dc05:3:154::20"
                    }
                }
            ]
        },
        "1": {
            "nics": [
                {
                    "interface_name": "eth1",
                    "nuam_node": 1,
                    "address": {
                        "ipv6": "fdbd:dc05:3:155::20"
                    },
                    "netns": "/var/run/netns/ns1"
                }
            ]
        }
    },
    "pod_entries": {}
})");
}

TEST(NicExampleTest, ThirdExampleSharesTheNicOfTheNode) {
  const auto plugin = Make(kExample);
  const TopologyHint second_node = {.nodes = {1}, .preferred = true};
  for (const char* pod : {"pod1", "pod2"}) {
    const auto nic = plugin->Allocate(Request(pod, "numa-enhancement", "NIC", 1), second_node);
    ASSERT_TRUE(nic.ok()) << nic.status();
    EXPECT_EQ(nic->oci_property, "");
    EXPECT_FALSE(nic->is_scalar_resource);
    EXPECT_FALSE(nic->is_node_resource);
    EXPECT_EQ(nic->envs, (StringMap{{"AFFINITY_NIC_ADDR_IPV6", "fdbd:dc05:3:155::20"}}));
    EXPECT_EQ(nic->annotations,
              (StringMap{{"kubernetes.io/host-netns-path", "/var/run/netns/ns1"}}));
    EXPECT_EQ(nic->hints, (std::vector<TopologyHint>{second_node}));
  }
}

TEST(NicPluginTest, GivesBothAddressesAndNoNetnsInDefaultOne) {
  Drive drive(Make("nics: [{interface: eth0, ipv4: 192.0.2.7, ipv6: \"2001:db8::7\"}]"));
  const auto nic = drive.Admit(Request("pod1", "", "NIC", 1));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->envs, (StringMap{{"AFFINITY_NIC_ADDR_IPV4", "192.0.2.7"},
                                  {"AFFINITY_NIC_ADDR_IPV6", "2001:db8::7"}}));
  EXPECT_TRUE(nic->annotations.empty());
}

TEST(NicPluginTest, HintsAnywhereOnlyWhenNearnessIsNotRequired) {
  const auto plugin = Make(kExample);
  EXPECT_EQ(plugin->Hints(Request("pod1", "numa-enhancement", "NIC", 1))->hints(),
            Preferred({0, 1}));
  std::vector<TopologyHint> want = Preferred({0, 1});
  want.push_back({.nodes = {0, 1}, .preferred = false});
  EXPECT_EQ(plugin->Hints(Request("pod1", "web", "NIC", 1))->hints(), want);
}

TEST(NicPluginTest, HasNoPreferenceWhenNicsAreNearToNoNode) {
  MachineParts parts = ExampleMachine().parts();
  parts.nics = {{.name = "virtio0"}};
  const auto plugin = Make("", Machine(parts), Host({{"virtio0", Healthy("192.0.2.7")}}));
  EXPECT_TRUE(plugin->Hints(Request("pod1", "", "NIC", 1))->IsNoPreference());
  EXPECT_EQ(plugin->Allocate(Request("pod1", "", "NIC", 1), {.nodes = {1}})->value, "virtio0");
  EXPECT_THAT(plugin->ExportState({}), HasSubstr(R"("none")"));
}

TEST(NicPluginTest, FindsTheMachinesNicsThatHaveAddresses) {
  const auto plugin =
      Make("", ExampleMachine(),
           Host({{"eth1", {.up = true, .has_link = true, .ipv6 = {"2001:db8::1"}}}}));
  EXPECT_EQ(plugin->Hints(Request("pod1", "", "NIC", 1))->hints().front(),
            (TopologyHint{.nodes = {1}, .preferred = true}));
  EXPECT_THAT(plugin->ExportState({}), HasSubstr("2001:db8::1"));
}

TEST(NicPluginTest, CompletesDeclaredNicFromTheMachine) {
  const auto plugin =
      Make("nics: [{interface: eth1}]", ExampleMachine(), Host({{"eth1", Healthy("192.0.2.1")}}));
  const auto nic = plugin->Allocate(Request("pod1", "", "NIC", 1), {});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->envs.at("AFFINITY_NIC_ADDR_IPV4"), "192.0.2.1");
  EXPECT_THAT(nic->hints, Optional(ElementsAre(Field(&TopologyHint::nodes, NumaMask{1}))));
}

TEST(NicPluginTest, IsImpossibleWithoutAnyNic) {
  const auto plugin = Make("");
  EXPECT_TRUE(plugin->Hints(Request("pod1", "", "NIC", 1))->IsImpossible());
  EXPECT_EQ(plugin->Allocate(Request("pod1", "", "NIC", 1), {}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(NicPluginTest, RejectsRequiredNicElsewhere) {
  const auto plugin = Make("nics: [{interface: eth0, numa-node: 0}]\nroles: {near: {}}");
  const TopologyHint second_node = {.nodes = {1}, .preferred = true};
  const auto near = plugin->Allocate(Request("pod1", "near", "NIC", 1), second_node);
  EXPECT_EQ(near.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(near.status()), HasSubstr("no NIC of NUMA nodes 1"));
  EXPECT_THAT(MessageOf(near.status()), HasSubstr("eth0 on node 0"));
  EXPECT_EQ(plugin->Allocate(Request("pod1", "far", "NIC", 1), second_node)->value, "eth0");
}

TEST(NicPluginTest, RulesPlaceSelectedContainersAsIfTheyHadTheRole) {
  const auto plugin = Make(
      "nics: [{interface: eth0, numa-node: 0}]\nroles: {near: {}}\n"
      "rules: [{select: {namespace: db-*}, role: near}]");
  ContainerRequest request = Request("pod1", "far", "NIC", 1);
  EXPECT_EQ(plugin->Allocate(request, {.nodes = {1}})->decided_by, "numa");
  request.pod_namespace = "db-1";
  EXPECT_EQ(plugin->Allocate(request, {.nodes = {0}})->decided_by, "rules[0] (nic.yaml:3)");
  EXPECT_THAT(MessageOf(plugin->Allocate(request, {.nodes = {1}}).status()),
              HasSubstr("no NIC of NUMA nodes 1"));
}

constexpr char kTwoOnOneNode[] = R"(
nics:
  - {interface: b, numa-node: 0, ipv4: 192.0.2.2}
  - {interface: a, numa-node: 0, ipv4: 192.0.2.1}
)";

TEST(NicPluginTest, ChoosesLeastUsedThenFirstByName) {
  Drive drive(Make(kTwoOnOneNode));
  EXPECT_EQ(drive.Admit(Request("pod1", "", "NIC", 1))->value, "a");
  EXPECT_EQ(drive.Admit(Request("pod2", "", "NIC", 1))->value, "b");
  EXPECT_EQ(drive.Admit(Request("pod3", "", "NIC", 1))->value, "a");
  drive.RemovePod("pod2");
  EXPECT_EQ(drive.Admit(Request("pod4", "", "NIC", 1))->value, "b");
}

TEST(NicPluginTest, ContainersOfOnePodShareItsNic) {
  Drive drive(Make(kTwoOnOneNode));
  ContainerRequest request = Request("pod1", "", "NIC", 1);
  EXPECT_EQ(drive.Admit(request)->value, "a");
  request.key.container = "c1";
  EXPECT_EQ(drive.Admit(request)->value, "a");
}

constexpr char kBandwidth[] = R"(
request: mbps
nics:
  - {interface: a, numa-node: 0, speed-mbps: 1000}
  - {interface: b, numa-node: 1, egress-mbps: 2000, ingress-mbps: 500}
)";

TEST(NicBandwidthTest, FillsNicsAndRejectsWhenAllAreFull) {
  Drive drive(Make(kBandwidth));
  const auto first = drive.Admit(Request("pod1", "", "NIC", 600));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->value, "a");
  EXPECT_TRUE(first->is_scalar_resource);
  EXPECT_EQ(first->quantity, 600);
  EXPECT_EQ(first->amount_by_node, (std::map<uint64_t, uint64_t>{{0, 600}}));
  EXPECT_TRUE(drive.plugin().Hints(Request("pod2", "", "NIC", 600))->IsImpossible())
      << "the tighter direction counts";
  EXPECT_EQ(drive.Admit(Request("pod2", "", "NIC", 450))->value, "b");
  const auto full = drive.plugin().Allocate(Request("pod3", "", "NIC", 500), {});
  EXPECT_THAT(MessageOf(full.status()),
              HasSubstr("a on node 0: 400 Mbit/s free, b on node 1: 50 Mbit/s free"));
  drive.RemovePod("pod1");
  EXPECT_EQ(drive.Admit(Request("pod3", "", "NIC", 500))->value, "a");
}

TEST(NicBandwidthTest, CountsTheLargerOfAPodsInitContainersAndTheOthers) {
  Drive drive(Make(R"({request: mbps, nics: [{interface: a, numa-node: 0, speed-mbps: 1000}]})"));
  const auto admit = [&](const std::string& container, ContainerType type, double mbps) {
    ContainerRequest request = Request("pod1", "", "NIC", mbps);
    request.key.container = container;
    request.type = type;
    return drive.Admit(request).status();
  };
  EXPECT_EQ(admit("init", ContainerType::kInit, 700), OkStatus());
  EXPECT_EQ(admit("first", ContainerType::kInit, 300), OkStatus());
  EXPECT_EQ(admit("main", ContainerType::kMain, 600), OkStatus());
  EXPECT_EQ(admit("sidecar", ContainerType::kSidecar, 250), OkStatus());
  EXPECT_FALSE(drive.Admit(Request("pod2", "", "NIC", 151)).ok()) << "850 are in use";
  EXPECT_TRUE(drive.Admit(Request("pod2", "", "NIC", 150)).ok());
  drive.RemovePod("pod1");
  EXPECT_TRUE(drive.Admit(Request("pod3", "", "NIC", 850)).ok());
}

TEST(NicBandwidthTest, ExportsAllocationsInBothDirections) {
  Drive drive(Make(kBandwidth));
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 600)).ok());
  const std::string state = drive.plugin().ExportState(drive.grants());
  EXPECT_THAT(state, HasSubstr(R"("egress_state": {)"));
  EXPECT_THAT(state, HasSubstr(R"("ingress_state": {)"));
  EXPECT_THAT(state, HasSubstr(R"("Free": 400.0)"));
}

TEST(NicBandwidthTest, RejectsAmountThatIsNotBandwidth) {
  const auto plugin = Make(kBandwidth);
  for (const double amount : {-1.0, HUGE_VAL, std::nan("")}) {
    EXPECT_EQ(plugin->Hints(Request("pod1", "", "NIC", amount)).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST(NicStateTest, WhatIsRemovedLeavesNoRoundingBehind) {
  const NicId eth0{.interface = "eth0"};
  const NicId eth1{.interface = "eth1"};
  NicState state;
  state.Put({"pod1", "c"}, {.nic = eth0, .mbps = 0.1});
  state.Put({"pod2", "c"}, {.nic = eth0, .mbps = 0.2});
  state.Put({"pod3", "c"}, {.nic = eth0, .mbps = 0.3});
  EXPECT_EQ(state.LoadOf(eth0).containers, 3u);
  EXPECT_EQ(state.Take({"pod1", "c"}), (Use{.nic = eth0, .mbps = 0.1}));
  EXPECT_TRUE(state.Take({"pod3", "c"}).has_value());
  EXPECT_EQ(state.LoadOf(eth0).mbps, 0.2);
  state.Put({"pod2", "c"}, {.nic = eth1, .mbps = 7});
  EXPECT_EQ(state.LoadOf(eth0).containers, 0u);
  EXPECT_EQ(state.LoadOf(eth0).mbps, 0);
  EXPECT_EQ(state.LoadOf(eth1).mbps, 7);
  EXPECT_FALSE(state.Take({"pod1", "c"}).has_value());
}

TEST(NicStateTest, APodIsRemovedWithAllOfItsContainers) {
  const NicId eth0{.interface = "eth0"};
  NicState state;
  state.Put({"pod1", "a"}, {.nic = eth0, .mbps = 1});
  state.Put({"pod1", "b"}, {.nic = eth0, .mbps = 1});
  state.Put({"pod2", "a"}, {.nic = eth0, .mbps = 4});
  EXPECT_EQ(state.LoadOf(eth0).mbps, 6);
  EXPECT_TRUE(state.TakePod("pod1"));
  EXPECT_FALSE(state.TakePod("pod1"));
  EXPECT_EQ(state.LoadOf(eth0).containers, 1u);
  EXPECT_EQ(state.LoadOf(eth0).mbps, 4);
}

TEST(NicStateTest, MergingChangesNothingForExistingContainers) {
  const NicId eth0{.interface = "eth0"};
  NicState more;
  more.Put({"pod1", "a"}, {.nic = eth0, .mbps = 5});
  more.Put({"pod2", "a"}, {.nic = eth0, .mbps = 2});
  NicState state;
  state.Put({"pod1", "a"}, {.nic = eth0, .mbps = 1});
  state.Merge(more);
  EXPECT_EQ(state.uses().size(), 2u);
  EXPECT_EQ(state.LoadOf(eth0).mbps, 3);
}

TEST(NicRestartTest, KeepsUsersAndTheirBandwidth) {
  Drive before(Make(kBandwidth));
  ASSERT_EQ(before.Admit(Request("pod1", "", "NIC", 600))->value, "a");
  Drive after(Make(kBandwidth), before);
  EXPECT_EQ(after.plugin().ExportState(after.grants()),
            before.plugin().ExportState(before.grants()));
  EXPECT_EQ(after.Admit(Request("pod2", "", "NIC", 450))->value, "b");
}

TEST(NicRestartTest, DistinguishesNicsOfTheSameName) {
  constexpr char kSameName[] = R"(
nics:
  - {interface: eth0, numa-node: 0, ipv4: 192.0.2.1, netns: /var/run/netns/a}
  - {interface: eth0, numa-node: 0, ipv4: 192.0.2.2, netns: /var/run/netns/b}
)";
  Drive before(Make(kSameName));
  ASSERT_EQ(before.Admit(Request("pod1", "", "NIC", 1))->annotations.begin()->second,
            "/var/run/netns/a");
  Drive after(Make(kSameName), before);
  EXPECT_EQ(after.Admit(Request("pod2", "", "NIC", 1))->annotations.begin()->second,
            "/var/run/netns/b");
}

TEST(NicConfigTest, RejectsMistakesWithTheirLocation) {
  for (const char* text : {"nic: []",
                           "resource: a/b/c",
                           "request: bytes",
                           "numa: near",
                           "nics: [{}]",
                           "nics: [{interface: a, ipv4: \"::1\"}]",
                           "nics: [{interface: a, ipv6: 1.2.3.4}]",
                           "nics: [{interface: a, netns: ns1}]",
                           "nics: [{interface: a, numa-node: -1}]",
                           "nics: [{interface: a, numa-node: 65536}]",
                           "nics: [{interface: a}, {interface: a}]",
                           "nics: [{interface: a, speed: 1}]",
                           "roles: {a: {numa: one}}",
                           "follow: some",
                           "names: {ipv4: A}",
                           "names: {ipv4-variable: 4A}",
                           "names: {ipv6-variable: \"\"}",
                           "names: {ipv4-variable: AFFINITY_NIC_ADDR_IPV6}",
                           "names: {netns-annotation: a/b/c}",
                           "names: {problem-annotation: kubernetes.io/host-netns-path}"}) {
    const Status status = Read(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr("cannot read nic.yaml:1")) << text;
  }
}

TEST(NicConfigTest, RejectsNicOnMissingNode) {
  EXPECT_EQ(MakeNicPlugin(*Read("nics: [{interface: a, numa-node: 2}]"), ExampleMachine(), {})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace qrm::nic::nic_plugin_test
