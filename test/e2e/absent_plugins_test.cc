// Containers whose plugins are not running, disabled or removed, on a simulated runtime.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::test::absent_plugins_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";
constexpr char kWidget[] = "example.com/widget";
constexpr char kHolds[] = "\"resource_name\": \"example.com/widget\"";
constexpr char kExtra[] = "example.com/extra";

// Eight CPUs on two nodes. Role "owner" gets exclusive CPUs, "widget" and "extra" a resource that
// runtimes do not report.
constexpr char kMachine[] = "machine: \"synthetic:package:2 [numa] core:4 pu:1\"\n";
constexpr char kPlaces[] = "reserved-cpus: \"0\"\nroles: {owner: {numa: one}}\n";
constexpr char kConfig[] =
    "skip-namespaces: []\n"
    "plugins: {cpu: {reserved-cpus: \"0\", roles: {owner: {numa: one}}}}\n"
    "implicit-resources:\n"
    "  - {resource: example.com/widget, roles: [widget]}\n"
    "  - {resource: example.com/extra, roles: [extra]}\n";

PodSpec Pod(const std::string& name, const std::string& role = "") {
  return {.name = name,
          .uid = "uid-" + name,
          .labels = {{kRoleLabel, role}},
          .container = {.milli_cpus = 1000, .memory_bytes = 1 << 20, .cpu_limit = true}};
}

class AbsentPluginsTest : public testing::Test {
 protected:
  AbsentPluginsTest() {
    std::ofstream(dir_ / "qrmd.yaml") << kMachine << kConfig;
    std::ofstream(dir_ / "cpu.yaml") << kMachine << kPlaces;
  }

  /// Restarts qrmd with `builtins` built in and waits for `live` plugins.
  void Start(const std::string& builtins, std::size_t live, std::vector<std::string> flags = {}) {
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtins,
                      .reconcile_period = "1s",
                      .flags = std::move(flags)});
    ASSERT_TRUE(IsOk(node_->Start(live)));
  }
  Status StartCpu() { return node_->StartPlugin("cpu", "cpu", dir_ / "cpu.yaml"); }
  /// A plugin process of `widget`, whose allocation is accompanied by one of `extra`.
  std::unique_ptr<ScriptedPlugin> StartWidget() {
    const std::string socket = dir_ / "node/plugins/widget.sock";
    std::filesystem::remove(socket);
    PluginScript script;
    script.hints = [](const auto&, auto&) { return OkStatus(); };
    script.allocate = [](const auto&, auto& response) {
      auto& given = *response.mutable_allocation_result()->mutable_resource_allocation();
      (*given[kWidget].mutable_envs())["WIDGET"] = "1";
      (*given[kExtra].mutable_envs())["EXTRA"] = "1";
      return OkStatus();
    };
    script.remove_pod = [](const auto&, auto&) { return OkStatus(); };
    script.identity = IdentityFor(kWidget);
    auto plugin = std::make_unique<ScriptedPlugin>(socket, script);
    EXPECT_TRUE(Await([&] { return IsLive(kWidget); }));
    return plugin;
  }
  bool IsLive(const std::string& resource) {
    const auto plugins = node_->ListPlugins();
    return plugins.ok() &&
           std::any_of(plugins->begin(), plugins->end(), [&](const v1::Plugin& plugin) {
             return plugin.resource_name() == resource && plugin.live();
           });
  }
  std::string Cpus(const std::string& pod) {
    const auto options = runtime_.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    return resources == options.end() ? "" : resources->value("cpusetCpus", "");
  }

  TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(AbsentPluginsTest, NoPodIsRejectedForABuiltInPluginThatIsDisabled) {
  Start("cpu,memory", 2);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("before", "owner"))));
  const std::string cpus = Cpus("before");
  ASSERT_NE(cpus, "");
  ASSERT_TRUE(IsOk(node_->Stop()));

  Start("memory", 1);
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("after", "owner"))));
  EXPECT_FALSE(CpuSet::Parse(Cpus("after"))->Intersects(*CpuSet::Parse(cpus)))
      << "no CPUs are placed, and exclusive CPUs stay so";
  EXPECT_EQ(Cpus("before"), cpus) << "it keeps what it has";
  EXPECT_THAT(*node_->Qrmctl({"plugins"}), HasSubstr("away")) << "its allocations are on record";
  EXPECT_THAT(*node_->Qrmctl({"status"}),
              AllOf(HasSubstr("yes, degraded"), HasSubstr("the plugin of cpu is not running: ")));
}

TEST_F(AbsentPluginsTest, OnlyPodsThatRequestAnAbsentPluginAreRejectedWithItsNameAndTheCures) {
  Start("cpu,memory", 2);
  auto widget = StartWidget();
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("before", "widget"))));
  widget.reset();
  ASSERT_TRUE(IsOk(node_->Stop()));

  Start("cpu,memory", 2);
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("ordinary"))));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("asking", "widget"))),
              AllOf(HasSubstr("resource example.com/widget: no plugin of example.com/widget has "
                              "registered since qrmd started; start it"),
                    HasSubstr("qrmctl plugins forget example.com/widget"), Not(HasSubstr("\n"))));
  widget = StartWidget();
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("asking", "widget"))));
}

TEST_F(AbsentPluginsTest, WhatAccompaniesAnAllocationNeedsNoPluginOfItsName) {
  Start("cpu,memory", 2);
  auto widget = StartWidget();
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("before", "widget"))));
  ASSERT_EQ(runtime_.RunOptions("before")["envs"]["EXTRA"], "1");
  ASSERT_TRUE(IsOk(node_->Stop()));

  Start("cpu,memory", 3);
  EXPECT_THAT(*node_->Qrmctl({"plugins"}), Not(HasSubstr(kExtra)));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("asking", "extra"))));
}

TEST_F(AbsentPluginsTest, ContainerThatRanBeforeItsPluginIsMarkedAndClaimsNothing) {
  Start("cpu,memory", 2);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("early", "widget"))));
  const auto widget = StartWidget();
  EXPECT_TRUE(Await([&] {
    return node_->Qrmctl({"pods", "early"})->find("Without:      example.com/widget") !=
           std::string::npos;
  })) << *node_->Qrmctl({"pods", "early"});
  ASSERT_TRUE(IsOk(node_->Reconcile()));
  EXPECT_THAT(*node_->Qrmctl({"pods", "early", "-o", "json"}), Not(HasSubstr(kHolds)));
  EXPECT_THAT(*node_->Qrmctl({"pods"}), HasSubstr("example.com/widget!"));
  EXPECT_THAT(*node_->Qrmctl({"explain", "early"}), HasSubstr("Too late for"));
  EXPECT_THAT(*node_->Qrmctl({"status"}),
              AllOf(HasSubstr("yes, degraded"),
                    HasSubstr("running containers that lack requested resources: 1; delete "
                              "their pods to recreate them: default/early/container0 without "
                              "example.com/widget")));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("next", "widget"))));
  EXPECT_EQ(runtime_.RunOptions("next")["envs"]["WIDGET"], "1");
  EXPECT_THAT(*node_->Qrmctl({"pods", "next"}),
              HasSubstr("example.com/widget=1 (from configuration)"));
}

TEST_F(AbsentPluginsTest, NoOrdinaryContainerIsPlacedWithoutARequiredPlugin) {
  Start("cpu,memory", 2, {"--required-plugins=cpu,example.com/widget"});
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("ordinary"))),
              AllOf(HasSubstr("no plugin of example.com/widget has registered since qrmd started"),
                    HasSubstr("take example.com/widget out of required-plugins"),
                    HasSubstr("plugin-namespaces"), Not(HasSubstr("\n"))));
  PodSpec system = Pod("system");
  system.pod_namespace = "kube-system";
  EXPECT_TRUE(IsOk(runtime_.RunPod(system)));
  EXPECT_NE(Cpus("system"), "") << "by the plugins that are there";
  const auto widget = StartWidget();
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("ordinary"))));
}

TEST_F(AbsentPluginsTest, NoContainerIsPlacedBeforeARequiredCpuPluginRegisters) {
  Start("", 0, {"--required-plugins=cpu"});
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("one"))), HasSubstr("resource cpu"));
  EXPECT_THAT(
      *node_->Qrmctl({"status"}),
      HasSubstr("new containers are rejected while the required plugin of cpu is not running"));
  ASSERT_TRUE(IsOk(StartCpu()));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("one"))));
  EXPECT_THAT(*node_->Qrmctl({"status"}), Not(HasSubstr("new containers are rejected")));
}

TEST_F(AbsentPluginsTest, AForgottenPluginLeavesNoTraceAndNoPodIsRejected) {
  Start("cpu,memory", 2);
  auto widget = StartWidget();
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("before", "widget"))));
  EXPECT_THAT(MessageOf(node_->Qrmctl({"plugins", "forget", kWidget, "--yes"}).status()),
              HasSubstr("cannot forget plugin example.com/widget: it is live at"));
  widget.reset();
  ASSERT_TRUE(Await([&] { return !IsLive(kWidget); }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("ordinary"))));

  EXPECT_THAT(*node_->Qrmctl({"plugins", "forget", kWidget}),
              AllOf(HasSubstr("before"), HasSubstr("Nothing has changed")));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("asking", "widget"))), HasSubstr("is not running"));
  EXPECT_THAT(*node_->Qrmctl({"plugins", "forget", kWidget, "--yes"}), HasSubstr("Forgot"));
  EXPECT_THAT(*node_->Qrmctl({"plugins"}), Not(HasSubstr(kWidget)));
  EXPECT_THAT(*node_->Qrmctl({"pods", "before", "-o", "json"}), Not(HasSubstr(kHolds)));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("asking", "widget"))));
  ASSERT_TRUE(IsOk(node_->Stop()));

  Start("cpu,memory", 2);
  EXPECT_THAT(*node_->Qrmctl({"plugins"}), Not(HasSubstr(kWidget))) << "nor after a restart";
}

TEST_F(AbsentPluginsTest, PendingRemovalsOfAForgottenPluginAreForgotten) {
  Start("memory", 1);
  ASSERT_TRUE(IsOk(StartCpu()));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("gone"))));
  node_->KillPlugin("cpu");
  ASSERT_TRUE(IsOk(runtime_.RemovePod("gone")));
  ASSERT_TRUE(Await([&] { return node_->GetStatus()->pending_removals() == 1; }));
  EXPECT_THAT(*node_->Qrmctl({"plugins", "forget", "cpu", "--yes"}), HasSubstr("uid-gone"));
  EXPECT_EQ(node_->GetStatus()->pending_removals(), 0U);
}

TEST_F(AbsentPluginsTest, APluginThatRunsAsAPodComesBackAfterItWasReplaced) {
  Start("", 0, {"--plugin-namespaces=plugins"});
  ASSERT_TRUE(IsOk(StartCpu()));
  node_->KillPlugin("cpu");
  ASSERT_TRUE(Await([&] { return !IsLive("cpu"); }));
  PodSpec plugin = Pod("cpu-plugin");
  EXPECT_THAT(MessageOf(runtime_.RunPod(plugin)),
              HasSubstr("list its namespace default in plugin-namespaces"));
  plugin.pod_namespace = "plugins";
  ASSERT_TRUE(IsOk(runtime_.RunPod(plugin)));
  EXPECT_EQ(Cpus("cpu-plugin"), "");
  ASSERT_TRUE(IsOk(StartCpu()));
  EXPECT_TRUE(Await([&] { return !Cpus("cpu-plugin").empty(); })) << "it is placed as others are";
}

}  // namespace
}  // namespace qrm::test::absent_plugins_test
