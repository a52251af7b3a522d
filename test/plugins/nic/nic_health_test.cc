// NICs and their containers when the kernel reports changes of the NICs.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/nic/nic_plugin.h"
#include "plugins/nic/state.h"
#include "plugins/sdk/change_signal.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::nic::nic_health_test {
namespace {

using test::Drive;
using test::ExampleMachine;
using test::Request;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kProblem[] = "nic.qrm.io/problem";
constexpr char kNetns[] = "/run/netns/a";

/// A watch that reports what the test says.
class ScriptedWatch final : public FactsWatch {
 public:
  explicit ScriptedWatch(std::function<void(const NicFacts&)>& tell) : tell_(tell) {}
  ~ScriptedWatch() override { tell_ = nullptr; }
  ScriptedWatch(const ScriptedWatch&) = delete;
  ScriptedWatch& operator=(const ScriptedWatch&) = delete;
  void Start(std::function<void(const NicFacts&)> on_change) override {
    tell_ = std::move(on_change);
  }

 private:
  std::function<void(const NicFacts&)>& tell_;
};

InterfaceFacts Healthy(const std::string& ipv4) {
  return {.up = true, .has_link = true, .speed_mbps = 1000, .ipv4 = {ipv4}};
}

NicFacts Host(std::map<std::string, InterfaceFacts> interfaces) {
  return {{"", {.interfaces = std::move(interfaces)}}};
}

class NicHealthTest : public testing::Test {
 protected:
  std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& keys, const NicFacts& facts,
                                            const Machine& machine = ExampleMachine()) {
    const auto config = ParseNicConfig(*config::Section::Parse(keys, "nic.yaml"));
    EXPECT_TRUE(config.ok()) << config.status();
    auto plugin = MakeNicPlugin(*config, machine, facts, std::make_unique<ScriptedWatch>(tell_));
    EXPECT_TRUE(plugin.ok()) << plugin.status();
    (*plugin)->changes().Connect([this] { ++notified_; });
    return *std::move(plugin);
  }

  std::function<void(const NicFacts&)> tell_;
  int notified_ = 0;
};

constexpr char kTwo[] =
    "nics: [{interface: a, numa-node: 0, ipv4: 192.0.2.1}, {interface: b, numa-node: 1}]";

TEST_F(NicHealthTest, NewContainersAvoidAnUnhealthyNic) {
  Drive drive(Make(kTwo, Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}})));
  ASSERT_EQ(drive.Admit(Request("pod1", "", "NIC", 1))->value, "a");
  tell_(Host({{"a", {.up = true}}, {"b", Healthy("192.0.2.2")}}));
  EXPECT_EQ(notified_, 1);
  const auto hints = drive.plugin().Hints(Request("pod2", "", "NIC", 1));
  EXPECT_EQ(hints->hints().front(), (TopologyHint{.nodes = {1}, .preferred = true}));
  EXPECT_EQ(drive.Admit(Request("pod2", "", "NIC", 1))->value, "b");
  ContainerRequest second = Request("pod1", "", "NIC", 1);
  second.key.container = "c1";
  EXPECT_EQ(drive.Admit(second)->value, "b") << "also a sidecar of the pod that had it before";
}

TEST_F(NicHealthTest, RetiredPluginWatchesNoMore) {
  const auto plugin = Make(kTwo, Host({{"a", Healthy("192.0.2.1")}}));
  ASSERT_TRUE(tell_);
  plugin->Retire();
  EXPECT_FALSE(tell_);
}

TEST_F(NicHealthTest, RejectionsNameNicAndReason) {
  const auto plugin = Make(kTwo, Host({{"a", {.up = true}}, {"b", {}}}));
  const Status hints = plugin->Hints(Request("pod1", "", "NIC", 1)).status();
  EXPECT_EQ(hints.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(hints),
              HasSubstr("repair the NIC, request less or delete a pod (a on node 0: "
                        "has no link, b on node 1: is set down)"));
  EXPECT_EQ(plugin->Allocate(Request("pod1", "", "NIC", 1), {}).status(), hints);
}

TEST_F(NicHealthTest, ContainersOfANicAreNotifiedOfTheProblemAndOfItsEnd) {
  constexpr char kOnOneNode[] =
      "nics: [{interface: a, numa-node: 0}, {interface: b, numa-node: 0}]";
  Drive drive(Make(kOnOneNode, Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}})));
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());
  ASSERT_TRUE(drive.Admit(Request("pod2", "", "NIC", 1)).ok());
  tell_(Host({{"b", Healthy("192.0.2.2")}}));
  drive.Reconcile();
  EXPECT_EQ(drive.Of("pod1").annotations, (StringMap{{kProblem, "there is no such interface"}}));
  EXPECT_THAT(drive.Of("pod2").annotations, IsEmpty());
  EXPECT_THAT(*drive.plugin().Reconcile(drive.grants()), IsEmpty()) << "once is enough";
  tell_(Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}}));
  drive.Reconcile();
  EXPECT_EQ(drive.Of("pod1").annotations, (StringMap{{kProblem, ""}}));
}

TEST_F(NicHealthTest, ContainersOfANicAreNotifiedOfAnotherAddress) {
  Drive drive(Make("nics: [{interface: a}]", Host({{"a", Healthy("192.0.2.1")}})));
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());
  InterfaceFacts more = Healthy("192.0.2.3");
  more.ipv4.push_back("192.0.2.1");
  tell_(Host({{"a", more}}));
  EXPECT_THAT(*drive.plugin().Reconcile(drive.grants()), IsEmpty()) << "it has its own still";
  tell_(Host({{"a", Healthy("192.0.2.2")}}));
  drive.Reconcile();
  EXPECT_EQ(drive.Of("pod1").envs, (StringMap{{"AFFINITY_NIC_ADDR_IPV4", "192.0.2.2"}}));
  EXPECT_THAT(drive.Of("pod1").annotations, IsEmpty());
}

TEST_F(NicHealthTest, RestoredContainersAreNotifiedOfWhatTheyDoNotKnow) {
  Drive drive(Make(kTwo, Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}})));
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());
  ASSERT_THAT(*drive.plugin().Reconcile(drive.grants()), IsEmpty());
  sdk::Grants recorded = drive.grants();
  recorded.begin()->second.allocation.Edit().annotations[kProblem] = "has no link";
  ASSERT_TRUE(drive.plugin().Restore(recorded).ok());
  const auto told = drive.plugin().Reconcile(recorded);
  ASSERT_EQ(told->size(), 1u);
  EXPECT_EQ(told->begin()->second.annotations.at(kProblem), "");
}

TEST_F(NicHealthTest, ANotificationThatFailedIsSentAgain) {
  Drive drive(Make(kTwo, Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}})));
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());
  tell_(Host({{"a", {.up = true}}, {"b", Healthy("192.0.2.2")}}));
  EXPECT_EQ(drive.plugin().Reconcile(drive.grants())->size(), 1u);
  EXPECT_EQ(drive.plugin().Reconcile(drive.grants())->size(), 1u);
}

TEST_F(NicHealthTest, WhatChangesNothingIsNotReported) {
  const auto plugin = Make(kTwo, Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}}));
  tell_(Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}, {"veth1", {}}}));
  EXPECT_EQ(notified_, 0);
}

TEST_F(NicHealthTest, AnUnhealthyNicCountsForTheCapacityOnly) {
  const auto plugin = Make(std::string("request: mbps\n") + kTwo,
                           Host({{"a", Healthy("192.0.2.1")}, {"b", Healthy("192.0.2.2")}}));
  EXPECT_EQ(plugin->Allocatable().allocatable, 2000);
  tell_(Host({{"a", {.up = true}}, {"b", Healthy("192.0.2.2")}}));
  const AllocatableResource now = plugin->Allocatable();
  EXPECT_EQ(now.capacity, 2000) << "a NIC without a link keeps its speed";
  EXPECT_EQ(now.allocatable, 1000);
  EXPECT_EQ(now.allocatable_by_node, (std::map<int, double>{{0, 0}, {1, 1000}}));
  EXPECT_THAT(plugin->ExportState({}), HasSubstr(R"("problem": "has no link")"));
}

TEST_F(NicHealthTest, ConfiguredSpeedAndNodeWinOverTheKernels) {
  InterfaceFacts seen = Healthy("192.0.2.1");
  seen.node = 1;
  const auto plugin =
      Make("request: mbps\nnics: [{interface: a, numa-node: 0, egress-mbps: 300}, {interface: b}]",
           Host({{"a", seen}, {"b", seen}}));
  EXPECT_EQ(plugin->Allocatable().capacity_by_node, (std::map<int, double>{{0, 300}, {1, 1000}}));
}

TEST_F(NicHealthTest, KeepsANicOfTheMachineThatLosesItsAddress) {
  MachineParts parts = ExampleMachine().parts();
  parts.nics = {{.name = "a", .node = 0}, {.name = "b", .node = 1}};
  const InterfaceFacts bare = {.up = true, .has_link = true};
  const auto plugin =
      Make("", Host({{"a", Healthy("192.0.2.1")}, {"b", bare}}), Machine(std::move(parts)));
  EXPECT_EQ(plugin->Allocatable().capacity, 1) << "b never had one";
  tell_(Host({{"a", bare}, {"b", bare}}));
  EXPECT_THAT(MessageOf(plugin->Hints(Request("pod1", "", "NIC", 1)).status()),
              HasSubstr("a on node 0: has no address"));
  tell_(Host({{"a", bare}, {"b", Healthy("192.0.2.2")}}));
  EXPECT_EQ(plugin->Allocate(Request("pod1", "", "NIC", 1), {})->value, "b");
}

TEST_F(NicHealthTest, NothingIsWrongWithWhatIsNotFollowed) {
  for (const char* follow : {"none", "host"}) {
    const auto plugin = Make(
        fmt::format("follow: {}\nnics: [{{interface: a, netns: {}}}]", follow, kNetns), Host({}));
    EXPECT_EQ(plugin->Allocate(Request("pod1", "", "NIC", 1), {})->value, "a") << follow;
  }
  const auto plugin = Make("follow: none\nnics: [{interface: a}]", Host({}));
  EXPECT_EQ(plugin->Allocate(Request("pod1", "", "NIC", 1), {})->value, "a");
}

TEST_F(NicHealthTest, RecordsAndProblemsOutliveARestart) {
  const std::string keys =
      fmt::format("request: mbps\nnics: [{{interface: a, netns: {}, speed-mbps: 1000}}]", kNetns);
  Drive before(Make(keys, {{kNetns, {.interfaces = {{"a", Healthy("192.0.2.1")}}}}}));
  ASSERT_TRUE(before.Admit(Request("pod1", "", "NIC", 600)).ok());
  tell_({{kNetns, {.exists = false}}});
  before.Reconcile();
  const StringMap told = {{"kubernetes.io/host-netns-path", kNetns},
                          {kProblem, "its network namespace /run/netns/a is gone"}};
  EXPECT_EQ(before.Of("pod1").annotations, told);

  Drive after(Make(keys, {{kNetns, {.exists = false}}}), before);
  EXPECT_THAT(*after.plugin().Reconcile(after.grants()), IsEmpty());
  EXPECT_THAT(after.plugin().ExportState(after.grants()), HasSubstr(R"("Free": 400.0)"));
}

TEST_F(NicHealthTest, ContainersLearnByTheConfiguredNames) {
  const std::string nics =
      fmt::format("nics: [{{interface: a, ipv4: 192.0.2.1, ipv6: \"::2\", netns: {}}}]\n", kNetns);
  const std::string names =
      "names: {ipv4-variable: ADDRESS, ipv6-variable: ADDRESS6, netns-annotation: "
      "example.com/netns, problem-annotation: example.com/problem}\n";
  Drive drive(Make(nics + names, {}));
  ASSERT_TRUE(drive.Admit(Request("pod1", "", "NIC", 1)).ok());
  EXPECT_EQ(drive.Of("pod1").envs, (StringMap{{"ADDRESS", "192.0.2.1"}, {"ADDRESS6", "::2"}}));
  EXPECT_EQ(drive.Of("pod1").annotations, (StringMap{{"example.com/netns", kNetns}}));
  tell_({{kNetns, {.exists = false}}});
  drive.Reconcile();
  EXPECT_THAT(drive.Of("pod1").annotations.at("example.com/problem"), HasSubstr("is gone"));

  Drive renamed(Make(nics, {}), drive);
  EXPECT_THAT(renamed.plugin().ExportState(renamed.grants()), HasSubstr(kNetns));
  EXPECT_EQ(
      renamed.plugin().Allocate(Request("pod2", "", "NIC", 1), {})->annotations.begin()->first,
      "kubernetes.io/host-netns-path");
}

struct ProblemCase {
  std::string name;
  std::string nic;
  NamespaceFacts around;
  std::string problem;
};

class NicProblemTest : public testing::TestWithParam<ProblemCase> {};

TEST_P(NicProblemTest, IsOneSentence) {
  const auto config = ParseNicConfig(*config::Section::Parse(
      fmt::format("nics: [{{interface: a, netns: {}, {}}}]", kNetns, GetParam().nic), "nic.yaml"));
  const auto nics = FindNics(*config, ExampleMachine(), {{kNetns, GetParam().around}});
  EXPECT_EQ(nics->front().problem, GetParam().problem);
}

const ProblemCase kProblems[] = {
    {"Healthy", "ipv4: 192.0.2.1", {.interfaces = {{"a", Healthy("192.0.2.1")}}}, ""},
    {"WithoutAnyAddress", "numa-node: 0", {.interfaces = {{"a", {true, true}}}}, ""},
    {"NamespaceGone",
     "numa-node: 0",
     {.exists = false},
     "its network namespace /run/netns/a is gone"},
    {"InterfaceGone", "numa-node: 0", {}, "there is no such interface"},
    {"SetDown", "numa-node: 0", {.interfaces = {{"a", {}}}}, "is set down"},
    {"NoLink", "numa-node: 0", {.interfaces = {{"a", {.up = true}}}}, "has no link"},
    {"OtherIpv4",
     "ipv4: 192.0.2.2",
     {.interfaces = {{"a", Healthy("192.0.2.1")}}},
     "does not have its address 192.0.2.2"},
    {"NoIpv6",
     "ipv6: \"2001:db8::1\"",
     {.interfaces = {{"a", Healthy("192.0.2.1")}}},
     "does not have its address 2001:db8::1"},
};
INSTANTIATE_TEST_SUITE_P(Table, NicProblemTest, testing::ValuesIn(kProblems),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::nic::nic_health_test
