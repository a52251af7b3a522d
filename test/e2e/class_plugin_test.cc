// A type of classes in a separate process (plugins/examples/open_files), through a real qrmd: real
// processes are the containers of a simulated runtime.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/process.h"
#include "test/e2e/runtime_messages.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/temp_dir.h"

namespace qrm::test::class_plugin_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kType[] = "open-files.example.com";
constexpr char kBin[] = "/proc/self/exe";

class ClassPluginTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = ContainerCgroup::Create(MakeContainer(Pod("")).linux().cgroups_path());
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    container_ = *std::move(made);
    std::ofstream(dir_ / "qrmd.yaml")
        << "machine: \"synthetic:package:1 [numa] core:4 pu:1\"\nqos-classes: true\n"
        << "class-types: {" << kType << ": {classes: {few: {namespaces: [\"*\"]}}}}\n";
    node_ = std::make_unique<Node>(Node::Options{.bin_dir = bin_,
                                                 .work_dir = dir_ / "node",
                                                 .config = dir_ / "qrmd.yaml",
                                                 .nri_socket = runtime_.nri_socket(),
                                                 .cri_socket = runtime_.cri_socket(),
                                                 .reconcile_period = "500ms"});
    ASSERT_TRUE(IsOk(node_->Start(0)));
    started_ = true;
  }
  void TearDown() override {
    if (started_) {
      EXPECT_TRUE(IsOk(node_->Stop()));
    }
  }

  static PodSpec Pod(const std::string& asks) {
    PodSpec pod{.name = "web", .uid = "uid-web", .container = {.name = "main"}};
    pod.annotations[std::string(kType) + ".resources.alpha.kubernetes.io/default"] = asks;
    return pod;
  }
  void StartPlugin() {
    auto plugin = Process::Start(
        {bin_ + "/qrm-example-open-files-plugin", "--plugins-registry-dir", dir_ / "node/plugins",
         "--state-dir", dir_ / "state", "--control-socket", dir_ / "node/control.sock"},
        dir_ / "plugin.log");
    ASSERT_TRUE(IsOk(plugin.status()));
    plugin_ = *std::move(plugin);
    ASSERT_TRUE(Await([&] { return Classes().find("64 files") != std::string::npos; }))
        << Classes() << plugin_->LastOutput();
  }
  std::string Classes() const { return node_->Qrmctl({"classes"}).value_or(""); }
  static rlim_t LimitOf(pid_t process) {
    rlimit limit{};
    ::prlimit(process, RLIMIT_NOFILE, nullptr, &limit);
    return limit.rlim_cur;
  }
  static bool Gets(pid_t process, rlim_t limit) {
    return Await([&] { return LimitOf(process) == limit; });
  }

  const std::string bin_ = std::filesystem::canonical(kBin).parent_path();
  const TempDir dir_;
  std::unique_ptr<ContainerCgroup> container_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
  std::unique_ptr<Process> plugin_;
  bool started_ = false;
};

TEST_F(ClassPluginTest, AContainerHasTheClassOfAPluginAndKeepsIt) {
  StartPlugin();
  const pid_t process = container_->Run(Idle);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("few"))));
  EXPECT_EQ(LimitOf(process), 64u);  // before it started
  const auto changed = node_->Qrmctl({"class", "set", "web", "main", std::string(kType) + "=many"});
  EXPECT_EQ(changed.value_or(MessageOf(changed.status())),
            std::string(kType) + " class: few -> many\n");
  EXPECT_EQ(LimitOf(process), 4096u);
  const pid_t exec = container_->Run(Idle);
  EXPECT_TRUE(Gets(exec, 4096));
}

TEST_F(ClassPluginTest, ATypeWhosePluginIsNotRunningRejectsPodsUntilItRegisters) {
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("few"))),
              AllOf(HasSubstr("asks for open-files.example.com class few"),
                    HasSubstr("no plugin has registered as open-files.example.com; start it")));
  StartPlugin();
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("few"))));
}

TEST_F(ClassPluginTest, AContainerKeepsItsClassWhileThePluginIsNotRunning) {
  StartPlugin();
  const pid_t process = container_->Run(Idle);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("few"))));
  plugin_->Kill();
  ASSERT_TRUE(Await([&] { return Classes().find("is not running") != std::string::npos; }))
      << Classes();
  EXPECT_EQ(LimitOf(process), 64u);
  EXPECT_THAT(node_->Qrmctl({"pods"}).value_or(""), HasSubstr(std::string(kType) + ":few"));

  const pid_t exec = container_->Run(Idle);
  StartPlugin();
  EXPECT_TRUE(Gets(exec, 64));
}

}  // namespace
}  // namespace qrm::test::class_plugin_test
