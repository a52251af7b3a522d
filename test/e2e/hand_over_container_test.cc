// CPUs that change their owner, checked by the kernel's cpusets all the time: no other container
// has them once their new owner's cgroup exists. Beside a real containerd; scripts/containerd.sh
// starts it and this test.
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/e2e/beside_containerd.h"
#include "test/e2e/cpuset_watcher.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"

namespace qrm::test::hand_over_container_test {
namespace {

class HandOverContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/hand-over-qrmd.yaml") << "plugins: {cpu: {static: true}}\n";
    ASSERT_TRUE(IsOk(node_.Start(1)));
  }
  void TearDown() override {
    EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
    EXPECT_TRUE(IsOk(node_.Stop()));
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  Kubelet kubelet_{KubeletBesideContainerd()};
  Node node_{QrmdBesideContainerd("hand-over", {.builtin_plugins = "cpu"})};
};

// So many that the runtime needs longer for their updates than for creating the owner.
constexpr int kShared = 32;

TEST_F(HandOverContainerTest, AContainersCpusAreExclusiveFromItsCreationOn) {
  std::vector<std::string> shared;
  for (int i = 0; i < kShared; ++i) {
    const std::string name = fmt::format("shared{}", i);
    const auto pod = kubelet_.RunPod(
        {.name = name, .uid = "uid-" + name, .container = {.name = "main", .milli_cpus = 10}});
    ASSERT_TRUE(IsOk(pod.status()));
    shared.push_back(pod->container_id);
  }
  for (int i = 0; i < 3; ++i) {
    const std::string uid = fmt::format("uid-owner{}", i);
    CpusetWatcher watcher({.root = CpusetsBelow(FromEnvironment("QRM_CGROUP_PARENT")),
                           .owner = uid,
                           .others = shared});
    const auto owner = kubelet_.RunPod(
        {.name = fmt::format("owner{}", i),
         .uid = uid,
         .container = {
             .name = "main", .milli_cpus = 1000, .memory_bytes = 64 << 20, .cpu_limit = true}});
    ASSERT_TRUE(IsOk(owner.status()));
    watcher.Stop();
    EXPECT_GT(watcher.looks_at_owner(), 0) << "it has no CPU for itself";
    EXPECT_EQ(watcher.overlaps(), std::vector<std::string>()) << "round " << i;
    ASSERT_TRUE(IsOk(kubelet_.RemovePod(*owner)));
  }
}

}  // namespace
}  // namespace qrm::test::hand_over_container_test
