// Classes of caches from a pod's annotation to each thread's group: qrmd on a file system that
// answers as resctrl does, with real processes as containers.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/rdt/resctrl.h"
#include "test/e2e/node.h"
#include "test/e2e/runtime_messages.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/resctrl/container_cgroup.h"
#include "test/support/resctrl/resctrl_double.h"
#include "test/support/temp_dir.h"

namespace qrm::test::rdt_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPartitions[] =
    "partitions:\n"
    "  exclusive: {l3Allocation: 60%, classes: {gold: {}}}\n"
    "  shared: {l3Allocation: 40%, classes: {silver: {}}}\n";

PodSpec Pod(const std::string& asks) {
  PodSpec pod{.name = "web", .uid = "uid-web", .container = {.name = "main"}};
  pod.annotations["rdt.resources.beta.kubernetes.io/pod"] = asks;
  return pod;
}

class RdtTest : public testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void TearDown() override {
    if (node_ != nullptr) {
      EXPECT_TRUE(IsOk(node_->Stop()));
    }
  }

  void Start(const ResctrlMachine& machine, const std::string& reconcile_period = "500ms") {
    node_.reset();
    runtime_.reset();
    resctrl_.reset();
    auto made = ResctrlDouble::Create(machine);  // while there are no threads
    if (!made.ok()) {
      GTEST_SKIP() << MessageOf(made.status());
    }
    resctrl_ = *std::move(made);
    ::setenv("QRM_RESCTRL_DOUBLE", resctrl_->directory().c_str(), 1);
    std::ofstream(dir_ / "rdt.yaml") << kPartitions;
    std::ofstream(dir_ / "qrmd.yaml")
        << "machine: \"synthetic:package:1 [numa] core:4 pu:1\"\nqos-classes: true\n"
        << "class-types: {rdt: {config-file: " << dir_ / "rdt.yaml"
        << ", classes: {gold: {namespaces: [\"*\"]}, silver: {namespaces: [\"*\"]}}}}\n";
    runtime_ = std::make_unique<SimulatedRuntime>(dir_.path());
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .daemon = "qrmd-on-resctrl-double",
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_->nri_socket(),
                      .cri_socket = runtime_->cri_socket(),
                      .reconcile_period = reconcile_period});
    ASSERT_TRUE(IsOk(node_->Start(0)));
  }

  /// The empty cgroup of the container of `Pod`.
  void MakeCgroup() {
    auto made = ContainerCgroup::Create(MakeContainer(Pod("")).linux().cgroups_path());
    ASSERT_TRUE(IsOk(made.status()));
    container_ = *std::move(made);
    resctrl_->Watch(container_->directory());
  }
  /// The groups of all threads of the container, by their own files.
  std::set<std::string> Groups() const {
    std::set<std::string> groups;
    for (const pid_t thread : container_->Threads()) {
      const auto group =
          rdt::Resctrl(resctrl_->paths()).GroupOf(thread).value_or(std::optional("unknown"));
      if (group.has_value()) {
        groups.insert(*group);
      }
    }
    return groups;
  }
  std::string PathOf(const std::string& name) const { return resctrl_->paths().mount + "/" + name; }
  std::string ReadFile(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(PathOf(name)).rdbuf();
    return text.str();
  }
  std::string Classes() const { return node_->Qrmctl({"classes", "-o", "json"}).value_or(""); }

  const TempDir dir_;
  std::unique_ptr<ResctrlDouble> resctrl_;
  std::unique_ptr<ContainerCgroup> container_;
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
};

TEST_F(RdtTest, AContainerIsMadeInTheGroupOfItsClass) {
  EXPECT_THAT(ReadFile("qrm-gold/schemata"), HasSubstr("L3:0=fff;1=fff;8=fff\n"));
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("gold"))));
  EXPECT_EQ(runtime_->RunOptions("web").value("rdt_class", ""), "qrm-gold");
  EXPECT_THAT(node_->Qrmctl({"classes"}).value_or(""), HasSubstr("L3:0=fff;1=fff;8=fff"));
  EXPECT_THAT(node_->Qrmctl({"pods"}).value_or(""), HasSubstr("rdt:gold"));
}

TEST_F(RdtTest, AForkStormHasItsNewClassWhollyWhenTheChangeIsAnswered) {
  MakeCgroup();
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("silver"))));
  container_->Run([] { ForkStorm(4); });
  const auto changed = node_->Qrmctl({"class", "set", "web", "main", "rdt=gold"});
  EXPECT_THAT(Groups(), ElementsAre("qrm-gold"));
  EXPECT_EQ(changed.value_or(MessageOf(changed.status())), "rdt class: silver -> gold\n");
}

TEST_F(RdtTest, AnExecIntoTheFormerGroupIsMovedByOneReconcile) {
  Start({}, "60s");
  MakeCgroup();
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("silver"))));
  container_->Run(Idle);
  ASSERT_TRUE(IsOk(node_->Qrmctl({"class", "set", "web", "main", "rdt=gold"}).status()));
  const pid_t exec = container_->Run(Idle);
  ASSERT_TRUE(IsOk(rdt::Resctrl(resctrl_->paths()).Move({exec}, "qrm-silver")));
  ::kill(node_->daemon_pid(), SIGHUP);  // one look at all containers of a class, as each period has
  EXPECT_TRUE(Await([&] { return Groups() == std::set<std::string>{"qrm-gold"}; }));
}

TEST_F(RdtTest, WhatOthersChangeOrRemoveIsPutBackAndCounted) {
  std::ofstream(PathOf("qrm-gold/schemata")) << "L3:1=3\n";
  std::filesystem::remove(PathOf("qrm-silver"));
  EXPECT_TRUE(Await([&] { return Classes().find("\"repairs\": 2") != std::string::npos; }))
      << Classes();
  EXPECT_THAT(ReadFile("qrm-gold/schemata"), HasSubstr("L3:0=fff;1=fff;8=fff\n"));
  EXPECT_THAT(ReadFile("qrm-silver/schemata"), HasSubstr("L3:0=ff000;1=ff000;8=ff000\n"));
}

TEST_F(RdtTest, AThreadThatLeftWhileQrmdWasDeadIsBackAfterItsStart) {
  MakeCgroup();
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("gold"))));
  const pid_t pid = container_->Run(Idle);
  ASSERT_TRUE(Await([&] { return Groups() == std::set<std::string>{"qrm-gold"}; }));
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(rdt::Resctrl(resctrl_->paths()).Move({pid}, "")));
  ASSERT_TRUE(IsOk(node_->Start(0)));
  EXPECT_TRUE(Await([&] { return Groups() == std::set<std::string>{"qrm-gold"}; }));
}

TEST_F(RdtTest, ContainersAreRejectedWhenThereAreMoreClassesThanTheProcessorSupports) {
  Start({.closids = 2});
  EXPECT_THAT(MessageOf(runtime_->RunPod(Pod("gold"))),
              AllOf(HasSubstr("asks for rdt class gold"), HasSubstr("resctrl supports 2 groups")));
  EXPECT_FALSE(std::filesystem::exists(PathOf("qrm-gold")));
}

}  // namespace
}  // namespace qrm::test::rdt_test
