// qrmd and its plugins on a disk that is full or read-only: running containers continue, no
// container is admitted, and all is well again, without a restart, when the disk is.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <sched.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/crash/pins.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/small_disk.h"
#include "test/support/temp_dir.h"

namespace qrm::test::disk_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kEnoughPods = 300;

enum class PluginsRun { kInside, kAsProcesses };

/// Runs from the top of the tree. "alone" has exclusive CPUs, "shared" runs on the rest.
class DiskTest : public testing::TestWithParam<PluginsRun> {
 protected:
  /// The small disk is mounted on `directory` of the node.
  void Start(const std::string& directory = "state") {
    const bool inside = GetParam() == PluginsRun::kInside;
    programs_ = std::filesystem::canonical("/proc/self/exe").parent_path();
    runtime_ = std::make_unique<SimulatedRuntime>(dir_.path());
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = programs_,
                      .work_dir = dir_ / "node",
                      .config = inside ? "test/crash/builtin.yaml" : "test/crash/qrmd.yaml",
                      .nri_socket = runtime_->nri_socket(),
                      .cri_socket = runtime_->cri_socket(),
                      .builtin_plugins = inside ? "cpu,memory" : "",
                      .reconcile_period = "1s"});
    std::filesystem::create_directories(dir_ / "node/" + directory);
    disk_ = std::make_unique<SmallDisk>(dir_ / "node/" + directory, "2m");
    if (!disk_->mounted()) {
      GTEST_SKIP() << "mounting a file system needs root";
    }
    ASSERT_TRUE(IsOk(node_->Start(inside ? 2 : 0)));
    if (!inside) {
      ASSERT_TRUE(IsOk(node_->StartPlugin("cpu", "cpu", "test/crash/cpu.yaml")));
      ASSERT_TRUE(IsOk(node_->StartPlugin("memory", "memory", "test/crash/memory.yaml")));
    }
    ASSERT_TRUE(IsOk(RunPod("alone", "database")));
    ASSERT_TRUE(IsOk(RunPod("other", "database")));
    ASSERT_TRUE(IsOk(RunPod("shared", "")));
    ASSERT_TRUE(Await([&] { return Agree(); }));
  }

  Status RunPod(const std::string& name, const std::string& role) {
    PodSpec pod = {.name = name,
                   .uid = "uid-" + name,
                   .container = {.milli_cpus = 2000, .memory_bytes = int64_t{1} << 30}};
    if (!role.empty()) {
      pod.labels["katalyst.kubewharf.io/pod_role"] = role;
    }
    const Status admitted = runtime_->RunPod(pod);
    if (admitted.ok()) {
      pods_[pod.uid] = name;
    }
    return admitted;
  }
  void RemovePod(const std::string& name) {
    pods_.erase("uid-" + name);
    EXPECT_TRUE(IsOk(runtime_->RemovePod(name)));
  }

  /// Some pods may still fit into what the logs have.
  std::string FirstRefusal() {
    for (int i = 0; i < kEnoughPods; ++i) {
      const Status admitted = RunPod("new" + std::to_string(i), "");
      if (!admitted.ok()) {
        return MessageOf(admitted);
      }
    }
    return "none";
  }

  Pins Running() const { return RunningPins(*runtime_, pods_); }
  bool Agree() const {
    const auto checkpointed = CheckpointedPins(dir_ / "node/state/qrmd");
    return checkpointed.ok() && *checkpointed == Running();
  }
  int Listed() const {
    const auto list = node_->ListPodResources();
    return list.ok() ? list->pod_resources_size() : -1;
  }

  /// What holds while nothing can be written.
  void ExpectServesWithoutADisk(const std::string& cause) {
    const int listed = Listed();
    const std::string refusal = FirstRefusal();
    EXPECT_THAT(refusal, AllOf(HasSubstr("cannot admit container container0 of pod default/new"),
                               HasSubstr(cause), Not(HasSubstr("\n"))));
    EXPECT_GE(Listed(), listed);
    EXPECT_EQ(Listed(), static_cast<int>(pods_.size()));

    const std::string before = Running()["uid-shared"].cpus;
    RemovePod("alone");
    EXPECT_TRUE(Await([&] {
      return Listed() == static_cast<int>(pods_.size()) && Running()["uid-shared"].cpus != before;
    })) << "shared containers get the CPUs of a removed one";
    EXPECT_THAT(node_->Qrmctl({"status"}).value(),
                AllOf(HasSubstr("Not ready because"),
                      HasSubstr("new containers are rejected while the disk accepts no writes"),
                      HasSubstr(cause)));
    EXPECT_FALSE(Agree());
  }

  void ExpectAllIsWellAgain() {
    EXPECT_TRUE(IsOk(RunPod("after", "database")));
    EXPECT_TRUE(node_->DaemonRuns());
    EXPECT_TRUE(Await([&] {
      return ExpectOneOwner(Running()).ok() && Agree() && PendingRemovals() == 0;
    })) << "shared containers made room, and all is written at last";
    EXPECT_EQ(Listed(), static_cast<int>(pods_.size()));
    EXPECT_TRUE(node_->GetStatus()->ready());

    const Pins running = Running();
    node_->KillDaemon();
    ASSERT_TRUE(IsOk(node_->Start(2)));
    EXPECT_TRUE(Await([&] { return Agree(); }));
    EXPECT_EQ(ToString(Running()), ToString(running));
  }
  uint64_t PendingRemovals() const {
    const auto status = node_->GetStatus();
    return status.ok() ? status->pending_removals() : UINT64_MAX;
  }

  const TempDir dir_;
  std::string programs_;
  std::unique_ptr<SmallDisk> disk_;
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
  StringMap pods_;  // that run: UID -> name
};

TEST_P(DiskTest, FullDiskStopsAdmissionsOnly) {
  Start();
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  disk_->Fill();
  ExpectServesWithoutADisk("the disk is full; free space on its file system");
  disk_->Clear();
  ExpectAllIsWellAgain();
}

TEST_P(DiskTest, ReadOnlyDiskStopsAdmissionsOnly) {
  const std::string flag = dir_ / "read-only";
  ::setenv("QRM_READ_ONLY_WHILE", flag.c_str(), 1);
  ::setenv("LD_PRELOAD", QRM_BIN "/libqrm-read-only.so", 1);
  Start();
  ::unsetenv("LD_PRELOAD");
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  std::ofstream(flag) << "now";
  ExpectServesWithoutADisk("check the disk");
  std::filesystem::remove(flag);
  ExpectAllIsWellAgain();
}

/// A larger request, as after an in-place resize, is made when the container is recreated, and once
/// more when the disk takes it.
TEST_P(DiskTest, ContainerIsRecreatedWithWhatItHasWhenTheDiskRejectsMore) {
  Start();
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  const Pins before = Running();
  disk_->Fill();
  FirstRefusal();
  EXPECT_TRUE(IsOk(
      runtime_->AddContainer("alone", {.milli_cpus = 4000, .memory_bytes = int64_t{1} << 30})));
  EXPECT_EQ(Running().at("uid-alone").cpus, before.at("uid-alone").cpus);
  disk_->Clear();
  EXPECT_TRUE(IsOk(RunPod("after", "database")));
  EXPECT_TRUE(Await([&] { return ExpectOneOwner(Running()).ok() && Agree(); }));
  EXPECT_TRUE(CpuSet::Parse(before.at("uid-alone").cpus)
                  ->IsSubsetOf(*CpuSet::Parse(Running().at("uid-alone").cpus)));
}

/// Only qrmd's own disk: plugin processes continue and keep files open for writing.
TEST_P(DiskTest, StartsOnAReadOnlyDisk) {
  Start("state/qrmd");
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  node_->KillDaemon();
  ASSERT_TRUE(disk_->MakeReadOnly());
  ASSERT_TRUE(IsOk(node_->Start(2)));
  ExpectServesWithoutADisk("mount its file system writable");
  ASSERT_TRUE(disk_->MakeWritable());
  ExpectAllIsWellAgain();
}

INSTANTIATE_TEST_SUITE_P(Plugins, DiskTest,
                         testing::Values(PluginsRun::kInside, PluginsRun::kAsProcesses),
                         [](const auto& param_info) {
                           return param_info.param == PluginsRun::kInside ? "Inside" : "Processes";
                         });

}  // namespace
}  // namespace qrm::test::disk_test
