// State that outlives the end of qrmd and of plugin processes, on a simulated runtime.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::restart_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::chrono::seconds kSoon{2};

PodSpec Pod(const std::string& name, const std::string& role, int64_t cpus, int64_t gib = 0) {
  return {.name = name,
          .uid = "uid-" + name,
          .labels = {{"katalyst.kubewharf.io/pod_role", role}},
          .container = {.milli_cpus = cpus * 1000, .memory_bytes = gib << 30}};
}

/// Runs from the top of the tree, with the sample configurations.
class RestartTest : public testing::TestWithParam<RegisterBy> {
 protected:
  void Start(int example) {
    samples_ = "docs/samples/example" + std::to_string(example) + "/";
    runtime_ = std::make_unique<SimulatedRuntime>(dir_.path());
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = samples_ + "qrmd.yaml",
                      .nri_socket = runtime_->nri_socket(),
                      .cri_socket = runtime_->cri_socket(),
                      .reconcile_period = "1s"});
    ASSERT_TRUE(IsOk(node_->Start(0)));
    ASSERT_TRUE(IsOk(StartPlugin("cpu", GetParam())));
    ASSERT_TRUE(IsOk(StartPlugin("memory", RegisterBy::kDirectory)));
  }
  Status StartPlugin(const std::string& name, RegisterBy by) {
    return node_->StartPlugin(name, name, samples_ + name + ".yaml", by);
  }

  /// The pod-resources List as text, for comparison.
  std::string List() {
    const auto list = node_->ListPodResources();
    return list.ok() ? list->ShortDebugString() : MessageOf(list.status());
  }
  /// The pod is gone for all running peers, although a plugin is not running.
  void ExpectRemovedAtOnce(const std::string& pod) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(IsOk(runtime_->RemovePod(pod)));
    EXPECT_TRUE(Await([&] { return List().empty() && !Knows("memory", pod); }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  }
  bool Knows(const std::string& plugin, const std::string& pod) {
    const auto state = node_->ExportState(plugin);
    return !state.ok() || state->find("uid-" + pod) != std::string::npos;
  }
  uint64_t PendingRemovals() {
    const auto status = node_->GetStatus();
    return status.ok() ? status->pending_removals() : UINT64_MAX;
  }
  std::string Cpus(const std::string& pod) {
    return runtime_->RunOptions(pod)["linux_container_resources"].value("cpusetCpus", "");
  }

  TempDir dir_;
  std::string samples_;
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
};

TEST_P(RestartTest, PluginThatWasKilledIsBackSoonWithItsAllocations) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  const std::string before = List();
  const auto cpu_state = node_->ExportState("cpu");
  node_->KillPlugin("cpu");

  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(IsOk(StartPlugin("cpu", GetParam())));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  EXPECT_EQ(*node_->ExportState("cpu"), *cpu_state);
  EXPECT_EQ(List(), before);
}

TEST_P(RestartTest, AdmissionWithoutAPluginFailsSoonAndLeavesNothingBehind) {
  Start(2);
  const auto memory_state = node_->ExportState("memory");
  node_->KillPlugin("cpu");

  const auto begin = std::chrono::steady_clock::now();
  const Status refused = runtime_->RunPod(Pod("pod2", "reranker", 10, 20));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(MessageOf(refused), AllOf(HasSubstr("pod2"), HasSubstr("container0"),
                                        HasSubstr("cpu"), Not(HasSubstr("\n"))));
  EXPECT_EQ(*node_->ExportState("memory"), *memory_state);
  EXPECT_EQ(node_->ListPodResources()->pod_resources_size(), 0);

  ASSERT_TRUE(IsOk(StartPlugin("cpu", GetParam())));
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod2", "reranker", 10, 20))));
  EXPECT_EQ(Cpus("pod2"), "2-11");
}

TEST_P(RestartTest, ExplainShowsAnAdmittedAndOfARejectedPodAlsoAfterARestart) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  ASSERT_FALSE(runtime_->RunPod(Pod("pod2", "storage-service", 200, 40)).ok());
  for (const char* when : {"before a restart", "after it"}) {
    SCOPED_TRACE(when);
    const StatusOr<std::string> admitted = node_->Qrmctl({"explain", "pod1"});
    ASSERT_TRUE(admitted.ok()) << admitted.status();
    EXPECT_THAT(*admitted, AllOf(HasSubstr("container0: admitted at"),
                                 HasSubstr("cpu:      20 (from estimate)"), HasSubstr("  Hints\n"),
                                 HasSubstr("  Merged by policy"), HasSubstr("  Given\n"),
                                 HasSubstr("  Applied last\n"), HasSubstr(", at its creation, "),
                                 HasSubstr(", commit ")));
    const StatusOr<std::string> refused = node_->Qrmctl({"explain", "pod2"});
    ASSERT_TRUE(refused.ok()) << refused.status();
    EXPECT_THAT(*refused, AllOf(HasSubstr("container0: rejected at"),
                                HasSubstr("cpu:      200 (from estimate)"),
                                HasSubstr("    cpu:      none: cannot get hints from plugin"),
                                HasSubstr("  Hints\n    memory:   node 1 preferred"),
                                HasSubstr("  Took\n    hints "), Not(HasSubstr("Applied last"))));
    std::cout << *admitted << *refused;
    node_->KillDaemon();
    ASSERT_TRUE(IsOk(node_->Start(2)));
  }
}

TEST_P(RestartTest, DaemonThatWasKilledKnowsItsPodsAndPluginsAgain) {
  Start(1);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "online-micro_service", 4))));
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod2", "ETL", 2))));
  const std::string before = List();
  node_->KillDaemon();
  EXPECT_EQ(Cpus("pod1"), "0-37,40-77");
  const std::size_t updates = runtime_->updates();

  ASSERT_TRUE(IsOk(node_->Start(2)));
  EXPECT_EQ(List(), before);
  EXPECT_EQ(runtime_->updates(), updates);
  ASSERT_TRUE(
      IsOk(node_->Qrmctl({"pool", "set", "online=0-13,40-53", "offline=14-39,54-79"}).status()));
  EXPECT_TRUE(Await([&] { return Cpus("pod1") == "0-13,40-53" && Cpus("pod2") == "14-39,54-79"; }));
  EXPECT_THAT(runtime_->unsolicited(), IsEmpty()) << "updates go over CRI";
}

TEST_P(RestartTest, PodThatEndedWhileTheDaemonWasNotRunningIsForgotten) {
  Start(1);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "online-micro_service", 4))));
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod2", "ETL", 2))));
  node_->KillDaemon();
  (void)runtime_->RemovePod("pod1");  // no process notices it
  ASSERT_TRUE(IsOk(node_->Start(2)));
  EXPECT_TRUE(Await([&] {
    const auto list = node_->ListPodResources();
    return list.ok() && list->pod_resources_size() == 1;
  }));
  EXPECT_TRUE(Await([&] { return !Knows("cpu", "pod1"); }));
}

TEST_P(RestartTest, PluginThatWasNotRunningIsNotifiedOfRemovedPodsWhenItReturns) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  node_->KillPlugin("cpu");
  ExpectRemovedAtOnce("pod1");
  EXPECT_TRUE(Await([&] { return PendingRemovals() == 1; }));  // when the call to it has failed

  ASSERT_TRUE(IsOk(StartPlugin("cpu", GetParam())));
  EXPECT_TRUE(Await([&] { return !Knows("cpu", "pod1") && PendingRemovals() == 0; }));
}

TEST_P(RestartTest, RemovalIsRememberedForAPluginAcrossARestart) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  node_->KillPlugin("cpu");
  ExpectRemovedAtOnce("pod1");
  EXPECT_TRUE(Await([&] { return PendingRemovals() == 1; }));
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(node_->Start(1)));
  EXPECT_EQ(PendingRemovals(), 1U);
  EXPECT_EQ(node_->ListPodResources()->pod_resources_size(), 0);

  ASSERT_TRUE(IsOk(StartPlugin("cpu", GetParam())));
  EXPECT_TRUE(Await([&] { return !Knows("cpu", "pod1") && PendingRemovals() == 0; }));
  EXPECT_TRUE(IsOk(runtime_->RunPod(Pod("pod2", "storage-service", 20, 40))));
}

TEST_P(RestartTest, RemovalDuringARestartReachesAPluginThatWasNotRunning) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  node_->KillPlugin("cpu");
  node_->KillDaemon();
  (void)runtime_->RemovePod("pod1");
  ASSERT_TRUE(IsOk(node_->Start(1)));
  EXPECT_TRUE(Await([&] { return !Knows("memory", "pod1") && PendingRemovals() == 1; }));

  ASSERT_TRUE(IsOk(StartPlugin("cpu", GetParam())));
  EXPECT_TRUE(Await([&] { return !Knows("cpu", "pod1") && PendingRemovals() == 0; }));
}

TEST_P(RestartTest, PluginThatHangsBlocksNoRemovalAndIsNotifiedWhenItResponds) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  StopChild(node_->plugin_pid("cpu"));
  ExpectRemovedAtOnce("pod1");

  ::kill(node_->plugin_pid("cpu"), SIGCONT);
  EXPECT_TRUE(Await([&] { return !Knows("cpu", "pod1") && PendingRemovals() == 0; }));
}

TEST_P(RestartTest, DaemonThatWasCutOffAttachesAgainAndHasLostNothing) {
  Start(2);
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  const std::string before = List();
  runtime_->Disconnect();
  ASSERT_TRUE(Await([&] {
    const auto status = node_->GetStatus();
    return status.ok() && status->runtime().nri_connected() &&
           status->runtime().nri_connects() == 2;
  }));
  EXPECT_EQ(List(), before);
  EXPECT_EQ(runtime_->updates(), 0U);
  EXPECT_TRUE(IsOk(runtime_->RunPod(Pod("pod2", "reranker", 10, 20))));
  EXPECT_EQ(Cpus("pod2"), "42-51");
}

INSTANTIATE_TEST_SUITE_P(Paths, RestartTest,
                         testing::Values(RegisterBy::kDirectory, RegisterBy::kSocket),
                         [](const auto& param_info) {
                           return param_info.param == RegisterBy::kDirectory ? "WatchedDirectory"
                                                                             : "KubeletSocket";
                         });

}  // namespace
}  // namespace qrm::test::restart_test
