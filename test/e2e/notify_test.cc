// From a pool change in a plugin process to the kernel, beside a real containerd;
// scripts/containerd.sh starts it and this test.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "manager/runtime/cgroup_cpusets.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/await.h"
#include "test/support/environment.h"

namespace qrm::test::notify_test {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// qrmd with a reconcile period longer than the test, the cpu plugin as a process, and one pod in
// the pool "online".
class NotifyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/notify-qrmd.yaml") << "{}\n";
    std::ofstream(work_dir_ + "/notify-cpu.yaml")
        << "default-pool: online\npools:\n  online: {cpus: \"0\"}\n  offline: {cpus: \"1\"}\n";
    ASSERT_EQ(node_.Start(0), OkStatus());
    ASSERT_EQ(node_.StartPlugin("cpu", "cpu", work_dir_ + "/notify-cpu.yaml"), OkStatus());
  }
  void TearDown() override { EXPECT_EQ(node_.Stop(), OkStatus()); }

  CpuSet CpusInKernel(uint32_t pid) const {
    const auto cpuset = reader_.ReadByPid(pid);
    return cpuset.ok() ? cpuset->cpus : CpuSet();
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  manager::CgroupReader reader_;
  Node node_{QrmdBesideContainerd("notify", {.reconcile_period = "10m"})};
  Kubelet kubelet_{KubeletBesideContainerd()};
};

TEST_F(NotifyTest, PoolChangeInAPluginProcessReachesTheCgroupBeforeAnyPeriod) {
  const auto pod = kubelet_.RunPod(
      {.name = "shared", .uid = "uid-shared", .container = {.name = "main", .milli_cpus = 100}});
  ASSERT_TRUE(pod.ok()) << pod.status();
  const auto info = kubelet_.Inspect(pod->container_id);
  ASSERT_TRUE(info.ok()) << info.status();
  const auto pid = (*info)["pid"].get<uint32_t>();
  ASSERT_EQ(CpusInKernel(pid), CpuSet{0});

  std::vector<microseconds> took;
  for (int round = 0; round < 20; ++round) {
    const int online = 1 - round % 2;
    const auto begin = steady_clock::now();
    ASSERT_EQ(node_.SetPluginPools("cpu", {{"online", std::to_string(online)},
                                           {"offline", std::to_string(1 - online)}}),
              OkStatus());
    ASSERT_TRUE(Await([&] { return CpusInKernel(pid) == CpuSet{online}; })) << "round " << round;
    took.push_back(std::chrono::duration_cast<microseconds>(steady_clock::now() - begin));
  }
  std::sort(took.begin(), took.end());
  std::cout << "from SetPools of the plugin to the cgroup: median " << took[took.size() / 2].count()
            << " us, longest " << took.back().count() << " us\n";
  EXPECT_LT(took[took.size() / 2], std::chrono::milliseconds(100));
  EXPECT_EQ(kubelet_.RemovePod(*pod), OkStatus());
}

}  // namespace
}  // namespace qrm::test::notify_test
