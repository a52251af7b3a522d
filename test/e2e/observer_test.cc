// qrmd beside a real containerd without NRI; scripts/containerd.sh starts it and this test.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/runtime/cgroup_cpusets.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/await.h"
#include "test/support/environment.h"

namespace qrm::test::observer_test {
namespace {

using testing::HasSubstr;

// qrmd with its cpu plugin; every pod belongs to the pool of CPU 1.
class ObserverModeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/observer-qrmd.yaml")
        << "plugins: {cpu: {default-pool: online, pools: {online: {cpus: \"1\"}}}}\n";
    ASSERT_EQ(node_.Start(1), OkStatus());
  }
  void TearDown() override { EXPECT_EQ(node_.Stop(), OkStatus()); }

  manager::CgroupCpuset InKernel(uint32_t pid) const {
    return reader_.ReadByPid(pid).value_or(manager::CgroupCpuset{});
  }
  v1::GetStatusResponse Told() const { return node_.GetStatus().value_or(v1::GetStatusResponse()); }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  const std::string nri_socket_ = work_dir_ + "/observer-nri.sock";
  manager::CgroupReader reader_;
  Node node_{QrmdBesideContainerd(
      "observer", {.nri_socket = nri_socket_,
                   .builtin_plugins = "cpu",
                   .reconcile_period = "1s",
                   .mode = "observer",
                   .flags = {"--observer-grace=100ms", "--observer-gone-after=500ms",
                             "--nri-retry-max=500ms"}})};
  Kubelet kubelet_{KubeletBesideContainerd()};

  StatusOr<uint32_t> RunPod(const std::string& name) {
    QRM_ASSIGN_OR_RETURN(const RunningPod pod,
                         kubelet_.RunPod({.name = name,
                                          .uid = "uid-" + name,
                                          .container = {.name = "main", .milli_cpus = 500}}));
    pods_.push_back(pod);
    QRM_ASSIGN_OR_RETURN(const nlohmann::json info, kubelet_.Inspect(pod.container_id));
    return info["pid"].get<uint32_t>();
  }

  /// The values of the only container that the runtime took, in qrmd's view.
  std::string Applied() const {
    const StatusOr<v1::ListPodsResponse> pods = node_.ListPods();
    if (!pods.ok() || pods->pods_size() != 1 || pods->pods(0).containers_size() != 1) {
      return {};
    }
    const auto& applied = pods->pods(0).containers(0).applied();
    const auto found = applied.find("CpusetCpus");
    return found == applied.end() ? std::string() : found->second;
  }

  std::vector<RunningPod> pods_;
};

TEST_F(ObserverModeTest, ContainerIsPinnedAfterItsStartKeptPinnedAndForgottenWithItsPod) {
  EXPECT_TRUE(Told().ready());
  ASSERT_EQ(Told().degraded_reasons_size(), 1);
  EXPECT_THAT(Told().degraded_reasons(0), HasSubstr("pinned after their creation"));
  EXPECT_THAT(*node_.Qrmctl({"status"}), HasSubstr("observer"));

  const StatusOr<uint32_t> pid = RunPod("late");
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_TRUE(Await([&] { return Applied() == "1"; }));
  EXPECT_EQ(InKernel(*pid).cpus, CpuSet{1});
  EXPECT_EQ(Told().reconcile().updates(), 1U) << "it had arrived at once";

  std::ofstream(InKernel(*pid).path + "/cpuset.cpus") << "0";  // another writer
  ASSERT_EQ(InKernel(*pid).cpus, CpuSet{0});
  EXPECT_TRUE(Await([&] { return InKernel(*pid).cpus == CpuSet{1}; }));
  EXPECT_TRUE(Await([&] { return Told().reconcile().drift_repairs() == 1; }));

  EXPECT_EQ(Told().pods(), 1U);
  ASSERT_EQ(kubelet_.RemovePod(pods_[0]), OkStatus());
  EXPECT_TRUE(Await([&] { return Told().pods() == 0; }, std::chrono::seconds(30)));
}

TEST_F(ObserverModeTest, NriIsUsedAgainWhenItIsThere) {
  const StatusOr<uint32_t> before = RunPod("before");
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_TRUE(Await([&] { return InKernel(*before).cpus == CpuSet{1}; }));

  std::filesystem::create_symlink(FromEnvironment("QRM_NRI_SOCKET"), nri_socket_);
  ASSERT_TRUE(Await([&] { return Told().runtime().mode() == "nri"; }));
  EXPECT_EQ(Told().degraded_reasons_size(), 0);
  const StatusOr<uint32_t> after = RunPod("after");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(InKernel(*after).cpus, CpuSet{1}) << "before its start";
  EXPECT_EQ(InKernel(*before).cpus, CpuSet{1});
  EXPECT_EQ(Told().pods(), 2U);
  for (const RunningPod& pod : pods_) {
    EXPECT_EQ(kubelet_.RemovePod(pod), OkStatus());
  }
  std::filesystem::remove(nri_socket_);
}

}  // namespace
}  // namespace qrm::test::observer_test
