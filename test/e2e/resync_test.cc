// Restarts, disconnections and updates on a real containerd: after each, all containers have the
// values that qrmd reports, and qrmd knows all of them. scripts/containerd.sh starts containerd and
// this test.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "test/e2e/agreement.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/churn.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/e2e/usable_cpus.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"

namespace qrm::test::resync_test {
namespace {

constexpr int kClients = 3;

/// One CPU is the pool of "batch" pods, the rest is only for "database" pods.
class ResyncTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(FromEnvironment("QRM_CRI_SOCKET"), "") << "run by scripts/containerd.sh";
    static int number = 0;
    work_dir_ = FromEnvironment("QRM_WORK_DIR") + "/n" + std::to_string(number++);
    std::filesystem::create_directories(work_dir_);
    WriteConfig();
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = work_dir_,
                      .config = work_dir_ + "/qrmd.yaml",
                      .nri_socket = FromEnvironment("QRM_NRI_SOCKET"),
                      .cri_socket = FromEnvironment("QRM_CRI_SOCKET"),
                      .builtin_plugins = "cpu,memory,nic",
                      .reconcile_period = "500ms"});
    ASSERT_TRUE(IsOk(node_->Start(3)));
  }
  void TearDown() override {
    EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
    EXPECT_TRUE(IsOk(node_->Stop()));
  }

  void WriteConfig() const {
    const std::string rule = "{database: {numa: one, share-numa-with: [database]}}";
    std::ofstream(work_dir_ + "/qrmd.yaml")
        << "plugins:\n"
        << "  cpu:\n"
        << "    default-pool: batch\n"
        << "    pools: {batch: {cpus: \"" << ToString(FirstOf(UsableCpus(), 1))
        << "\", roles: [batch]}}\n"
        << "    roles: " << rule << "\n"
        << "  memory:\n"
        << "    roles: " << rule << "\n";
  }

  static PodSpec Batch(const std::string& name) {
    return {.name = name,
            .uid = "uid-" + name,
            .labels = {{"katalyst.kubewharf.io/pod_role", "batch"}},
            .container = {.milli_cpus = 100, .memory_bytes = 16 << 20}};
  }
  /// Has an exclusive CPU.
  static PodSpec Database(const std::string& name) {
    return {.name = name,
            .uid = "uid-" + name,
            .labels = {{"katalyst.kubewharf.io/pod_role", "database"}},
            .container = {.milli_cpus = 1000, .memory_bytes = 32 << 20, .cpu_limit = true}};
  }
  RunningPod Run(const PodSpec& spec) {
    StatusOr<RunningPod> pod = kubelet_.RunPod(spec);
    EXPECT_TRUE(IsOk(pod.status()));
    return pod.value_or(RunningPod());
  }
  std::unique_ptr<Churn> StartChurn() {
    auto churn = std::make_unique<Churn>(
        kClients, kubelet_options_, [](int number) { return Batch(fmt::format("c{}", number)); });
    EXPECT_TRUE(churn->WaitForMore(kClients));
    return churn;
  }
  void ExpectAgreement() { EXPECT_TRUE(IsOk(AwaitAgreement(kubelet_, *node_))); }

  /// A value of the runtime's own record of the container, by JSON pointer.
  nlohmann::json Spec(const RunningPod& pod, const char* pointer) {
    return kubelet_.Inspect(pod.container_id)
        .value_or(nlohmann::json())
        .value(nlohmann::json::json_pointer(pointer), nlohmann::json());
  }
  std::string List() const {
    const auto list = node_->ListPodResources();
    return list.ok() ? list->ShortDebugString() : MessageOf(list.status());
  }
  uint64_t NriConnects() const {
    const auto status = node_->GetStatus();
    return status.ok() && status->runtime().nri_connected() ? status->runtime().nri_connects() : 0;
  }

  void RestartContainerd(int signal) {
    const std::string pid_file = FromEnvironment("QRM_WORK_DIR") + "/containerd.pid";
    const auto pid = [&] {
      pid_t value = 0;
      std::ifstream(pid_file) >> value;
      return value;
    };
    const pid_t before = pid();
    const uint64_t connects = NriConnects();
    ASSERT_EQ(::kill(before, signal), 0);
    ASSERT_TRUE(Await([&] { return pid() != before && pid() != 0; }));
    ASSERT_TRUE(Await([&] { return NriConnects() > connects; }, std::chrono::seconds(30)));
  }

  std::string work_dir_;
  const Kubelet::Options kubelet_options_ = KubeletBesideContainerd();
  Kubelet kubelet_{kubelet_options_};
  std::unique_ptr<Node> node_;
};

TEST_F(ResyncTest, CreatedContainersRunWithWhatListReports) {
  Run(Batch("b"));
  Run(Database("d"));
  ExpectAgreement();
}

TEST_F(ResyncTest, RestartedContainerKeepsItsAllocationsUnderItsNewId) {
  RunningPod pod = Run(Database("d"));
  const std::string before = List();
  const std::string old_id = pod.container_id;
  ASSERT_TRUE(IsOk(kubelet_.RestartContainer(pod)));  // the new one runs before the old one ends
  EXPECT_NE(pod.container_id, old_id);
  EXPECT_EQ(List(), before);
  ExpectAgreement();
}

TEST_F(ResyncTest, ResizedContainerTakesItsSharesAndKeepsOurCpus) {
  const RunningPod pod = Run(Batch("b"));
  CgroupValues values = ValuesFor({.milli_cpus = 300, .memory_bytes = 24 << 20});
  for (const std::string& cpus : {std::string(), ToString(UsableCpus())}) {
    ASSERT_TRUE(IsOk(kubelet_.Resize(pod.container_id, values, cpus)));
    EXPECT_EQ(Spec(pod, "/runtimeSpec/linux/resources/cpu/shares"), values.cpu_shares);
    EXPECT_TRUE(IsOk(CompareAll(kubelet_, *node_))) << "without waiting for a reconcile";
    values.cpu_shares += 100;
  }
}

TEST_F(ResyncTest, RecreatedSandboxKeepsThePodsAllocations) {
  RunningPod pod = Run(Database("d"));
  const std::string before = List();
  const std::string old_id = pod.sandbox_id;
  ASSERT_TRUE(IsOk(kubelet_.ReplaceSandbox(pod)));
  EXPECT_NE(pod.sandbox_id, old_id);
  EXPECT_EQ(List(), before);
  ExpectAgreement();
}

TEST_F(ResyncTest, PodThatIsOlderThanContainerdIsForgottenWhenItIsRemoved) {
  const RunningPod pod = Run(Database("d"));
  ASSERT_NO_FATAL_FAILURE(RestartContainerd(SIGTERM));
  EXPECT_FALSE(List().empty());
  ASSERT_TRUE(IsOk(kubelet_.RemovePod(pod)));  // which containerd does not report
  EXPECT_TRUE(Await([&] { return List().empty(); }));
}

TEST_F(ResyncTest, NothingIsLostWhenContainerdIsRestartedUnderLoad) {
  Run(Database("d"));
  const auto churn = StartChurn();
  for (const int signal : {SIGTERM, SIGKILL}) {
    ASSERT_NO_FATAL_FAILURE(RestartContainerd(signal));
    EXPECT_TRUE(churn->WaitForMore(kClients));
  }
  churn->Stop();
  ExpectAgreement();
}

TEST_F(ResyncTest, NothingIsLostWhenQrmdIsRestartedUnderLoad) {
  Run(Database("d"));
  const auto churn = StartChurn();
  ASSERT_TRUE(IsOk(node_->Stop()));
  EXPECT_TRUE(churn->WaitForMore(1)) << "containers are made without qrmd";
  ASSERT_TRUE(IsOk(node_->Start(3)));
  EXPECT_TRUE(churn->WaitForMore(1));
  node_->KillDaemon();
  EXPECT_TRUE(churn->WaitForMore(1));
  ASSERT_TRUE(IsOk(node_->Start(3)));
  churn->Stop();
  ExpectAgreement();
}

TEST_F(ResyncTest, NothingIsLostWhenTheNriSocketIsGoneForAWhile) {
  Run(Database("d"));
  const std::string socket = FromEnvironment("QRM_NRI_SOCKET");
  const uint64_t connects = NriConnects();
  std::filesystem::rename(socket, socket + ".away");
  StopChild(node_->daemon_pid());
  Run(Batch("made-while-qrmd-hung"));  // which the runtime then disconnects
  ::kill(node_->daemon_pid(), SIGCONT);
  EXPECT_TRUE(Await([&] { return NriConnects() == 0; })) << "it was cut off";
  Run(Batch("made-without-nri"));
  std::filesystem::rename(socket + ".away", socket);
  EXPECT_TRUE(Await([&] { return NriConnects() > connects; }));
  Run(Batch("made-after-it"));
  ExpectAgreement();
}

}  // namespace
}  // namespace qrm::test::resync_test
