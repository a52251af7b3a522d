// qrmd started again on a machine that has changed: it repairs what no longer fits, reports it, and
// continues.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/id_set.h"
#include "test/crash/pins.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::machine_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The change of the node.
struct Hardware {
  std::string machine = "package:2 [numa] core:20 pu:2";
  std::string memory = "{0: 16Gi, 1: 16Gi}";
  std::string reserved = "0";
};

class MachineChangeTest : public testing::Test {
 protected:
  void Start(const Hardware& hardware) {
    const std::string roles = "roles: {database: {numa: one, share-numa-with: [database]}}";
    std::ofstream(dir_ / "qrmd.yaml")
        << "machine: \"synthetic:" << hardware.machine << "\"\nnuma-memory: " << hardware.memory
        << "\ntopology-policy: best-effort\nplugins:\n  cpu:\n    reserved-cpus: \""
        << hardware.reserved << "\"\n    " << roles << "\n  memory:\n    " << roles << "\n";
    node_.reset();
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu,memory",
                      .reconcile_period = "1s"});
    ASSERT_TRUE(IsOk(node_->Start(2)));
    EXPECT_TRUE(node_->GetStatus()->ready());
  }

  Status RunPod(const std::string& name) {
    const PodSpec pod = {.name = name,
                         .uid = "uid-" + name,
                         .labels = {{"katalyst.kubewharf.io/pod_role", "database"}},
                         .container = {.milli_cpus = 4000, .memory_bytes = int64_t{2} << 30}};
    QRM_RETURN_IF_ERROR(runtime_.RunPod(pod));
    pods_[pod.uid] = name;
    return OkStatus();
  }
  /// Ten pods, which take 40 CPUs and 20 GiB.
  void RunPods() {
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(IsOk(RunPod("pod" + std::to_string(i))));
    }
  }

  Pins Running() const { return RunningPins(runtime_, pods_); }
  bool Agree() const {
    const auto checkpointed = CheckpointedPins(dir_ / "node/state/qrmd");
    return checkpointed.ok() && *checkpointed == Running();
  }
  bool AllWithin(const CpuSet& cpus, const NumaMask& nodes) const {
    for (const auto& [uid, pinned] : Running()) {
      const CpuSet own = CpuSet::Parse(pinned.cpus).value();
      if (own.Empty() || !own.IsSubsetOf(cpus) ||
          !NumaMask::Parse(pinned.mems)->IsSubsetOf(nodes)) {
        return false;
      }
    }
    return true;
  }
  std::string Said() const {
    std::ifstream file(dir_ / "node/logs/qrmd.log");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string Warnings() const {
    const StatusOr<v1::GetStatusResponse> status = node_->GetStatus();
    std::string text;
    for (const std::string& warning : status.value().warnings()) {
      text += warning + "\n";
    }
    return text;
  }

  const TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
  StringMap pods_;  // that run: UID -> name
};

TEST_F(MachineChangeTest, ContainersLeaveCpusThatAreGone) {
  Start({.reserved = "0,79"});
  RunPods();
  Start({.machine = "package:2 [numa] core:5 pu:2", .reserved = "0,79"});
  EXPECT_THAT(Warnings(), HasSubstr("which this machine does not have (CPUs 0-19,"));
  EXPECT_TRUE(Await([&] { return AllWithin(*CpuSet::Parse("0-19"), {0, 1}) && Agree(); }));

  ASSERT_TRUE(IsOk(runtime_.RemovePod("pod0")));
  pods_.erase("uid-pod0");
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(node_->Start(2)));
  EXPECT_THAT(Warnings(), Not(HasSubstr("which this machine does not have")));
  EXPECT_TRUE(Await([&] { return Agree(); }));
}

TEST_F(MachineChangeTest, ContainersKeepCpusThatAreReservedNow) {
  Start({});
  RunPods();
  const Pins before = Running();
  Start({.reserved = "0-7"});
  EXPECT_THAT(Said(), HasSubstr("which are reserved now"));
  EXPECT_TRUE(Await([&] { return Agree(); }));
  EXPECT_EQ(ToString(Running()), ToString(before));
}

TEST_F(MachineChangeTest, NothingIsFreeOnANodeThatShrank) {
  Start({});
  RunPods();
  const Pins before = Running();
  Start({.memory = "{0: 1Gi, 1: 1Gi}"});
  EXPECT_THAT(Said(), HasSubstr("allocatable ones: nothing is free"));
  EXPECT_FALSE(RunPod("more").ok());
  EXPECT_TRUE(Await([&] { return Agree(); }));
  EXPECT_EQ(ToString(Running()), ToString(before));
}

TEST_F(MachineChangeTest, ContainersLeaveANodeThatIsGone) {
  Start({});
  RunPods();
  Start({.machine = "package:1 [numa] core:20 pu:2", .memory = "{0: 16Gi}"});
  EXPECT_THAT(Warnings(), HasSubstr("NUMA nodes 0): it gets a new allocation"));
  EXPECT_TRUE(Await([&] {
    const auto checkpointed = CheckpointedPins(dir_ / "node/state/qrmd");
    for (const auto& [uid, pinned] : checkpointed.value_or(Pins())) {
      if (!CpuSet::Parse(pinned.cpus)->IsSubsetOf(*CpuSet::Parse("0-39")) ||
          !NumaMask::Parse(pinned.mems)->IsSubsetOf(NumaMask{0})) {
        return false;
      }
    }
    return checkpointed.ok() && checkpointed->size() == pods_.size();
  }));
}

}  // namespace
}  // namespace qrm::test::machine_test
