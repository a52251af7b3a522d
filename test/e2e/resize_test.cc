// Pods whose requests change without an event, on a simulated runtime.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"

namespace qrm::test::resize_test {
namespace {

namespace fs = std::filesystem;

constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";
constexpr int64_t kMebibyte = int64_t{1} << 20;

class ResizeTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteSysfsMachine(machine_, {.cpus = 8});
    std::ofstream(dir_ / "qrmd.yaml") << "machine: \"fsroot:" << machine_.string()
                                      << "\"\n"
                                         "plugins: {cpu: {roles: {service: {}}}}\n";
  }
  /// qrmd and its cpu plugin, which learns of containers by `mode`.
  void Start(const std::string& mode = "nri") {
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = fs::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = mode == "nri" ? runtime_.nri_socket() : dir_ / "no-nri.sock",
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu",
                      .reconcile_period = "100ms",
                      .mode = mode,
                      .flags = {"--observer-grace=0s"}});
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }

  static ContainerSpec Container(int64_t cpus) {
    return {.milli_cpus = cpus * 1000, .memory_bytes = kMebibyte, .cpu_limit = true};
  }
  static PodSpec Pod(int64_t cpus) {
    return {.name = "web",
            .uid = "uid-web",
            .labels = {{kRoleLabel, "service"}},
            .container = Container(cpus)};
  }
  CpuSet Cpus() const {
    const auto options = runtime_.RunOptions("web");
    const auto resources = options.find("linux_container_resources");
    return resources == options.end()
               ? CpuSet()
               : CpuSet::Parse(resources->value("cpusetCpus", "")).value_or(CpuSet());
  }
  bool Gets(int cpus) const {
    return Await([&] { return Cpus().Count() == cpus; });
  }

  const TempDir dir_;
  const fs::path machine_ = dir_ / "machine";
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(ResizeTest, AContainerThatGrewWhileQrmdWasNotRunningGetsMore) {
  Start();
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod(2))));
  const CpuSet before = Cpus();
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(runtime_.ResizeUnseen("web", Container(4))));
  ASSERT_TRUE(IsOk(node_->Start(1)));
  EXPECT_TRUE(Gets(4)) << ToString(Cpus());
  EXPECT_TRUE(before.IsSubsetOf(Cpus()));
}

TEST_F(ResizeTest, AContainerThatGrowsInObserverModeGetsMore) {
  runtime_.RunPodUnseen(Pod(2));
  ASSERT_TRUE(IsOk(runtime_.ResizeUnseen("web", Container(2))));
  Start("observer");
  EXPECT_TRUE(Gets(2)) << ToString(Cpus());
  ASSERT_TRUE(IsOk(runtime_.ResizeUnseen("web", Container(4))));
  EXPECT_TRUE(Gets(4)) << ToString(Cpus());
  ASSERT_TRUE(IsOk(runtime_.ResizeUnseen("web", Container(3))));
  EXPECT_TRUE(Gets(3)) << ToString(Cpus());
}

TEST_F(ResizeTest, CpusThatWereGoneAtAStartAreReplacedAndTheNodeReportsWhatIsPending) {
  Start();
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod(4))));
  const CpuSet before = Cpus();
  node_->KillDaemon();
  SetOnline(machine_, CpuSet{before.First()} | CpuSet{7});
  ASSERT_TRUE(IsOk(node_->Start(1)));
  EXPECT_TRUE(Gets(1)) << ToString(Cpus());
  EXPECT_TRUE(Await([&] {
    const auto pods = node_->ListPods();
    return pods.ok() && pods->pods_size() == 1 && !pods->pods(0).containers(0).pending().empty();
  }));
  node_->KillDaemon();
  SetOnline(machine_, CpuSet{before.First()} | CpuSet::Range(4, 7));
  ASSERT_TRUE(IsOk(node_->Start(1)));
  EXPECT_TRUE(Gets(4)) << ToString(Cpus());
}

}  // namespace
}  // namespace qrm::test::resize_test
