// Containers whose cgroups are partitions, beside a real runtime.
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/process.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::partition_test {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{120};

/// qrmd, and qrm-cci-driver, which all pods may ask for.
class ContainerPartitionTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    StartNode(
        "compute-drivers: {attributes: {namespaces: [default]}}\n"
        "plugins: {cpu: {reserved-cpus: \"0-1\"}}\n");
    auto driver = Process::Start(
        {std::filesystem::canonical("/proc/self/exe").parent_path() / "qrm-cci-driver",
         "--plugins-registry-dir", node_dir_ + "/plugins", "--state-dir", work_dir_ + "/driver",
         "--control-socket", ""},
        work_dir_ + "/driver.log");
    ASSERT_TRUE(IsOk(driver.status()));
    driver_ = *std::move(driver);
    ASSERT_TRUE(IsOk(node_->WaitForPlugins(3)));
  }

  static PodSpec Unbalanced() {
    PodSpec spec = Guaranteed("quiet", 2);
    spec.annotations = {{"cci.qrm.io/driver", "attributes"},
                        {"cci.qrm.io/spec", "{cores: '*2', attributes: no-balance}"}};
    return spec;
  }
  /// False if the emulated machine was too slow.
  static bool IsDecided(const Status& status) {
    return MessageOf(status).find("DeadlineExceeded") == std::string::npos;
  }
  /// As kubelet, which tries again.
  StatusOr<RunningPod> RunUntilItIsDecided(const PodSpec& spec) {
    StatusOr<RunningPod> pod = Run(spec);
    EXPECT_TRUE(Await(
        [&] {
          if (!IsDecided(pod.status())) {
            pod = Run(spec);
          }
          return IsDecided(pod.status());
        },
        kPatience));
    return pod;
  }
  Status MakeAgain(RunningPod& pod) {
    QRM_ASSIGN_OR_RETURN(pod.container_id,
                         kubelet_.AddContainer(pod, pod.spec.container, pod.containers++));
    return OkStatus();
  }
  /// Whether Linux 6.7 or later makes partitions of cgroups below others that are not partitions.
  static bool MayBe() {
    for (const auto& entry : std::filesystem::directory_iterator("/sys/fs/cgroup")) {
      if (std::filesystem::exists(entry.path() / "cpuset.cpus.exclusive")) {
        return true;
      }
    }
    return false;
  }

  std::unique_ptr<Process> driver_;
};

TEST_F(ContainerPartitionTest, IsTheContainersThroughRestartsAndFreeAfterwards) {
  auto pod = RunUntilItIsDecided(Unbalanced());
  if (!MayBe()) {
    EXPECT_THAT(MessageOf(pod.status()), HasSubstr("needs cgroup v2, Linux 6.7"));
    return;
  }
  ASSERT_TRUE(IsOk(pod.status()));
  const CpuSet cpus = CpusetOf(*pod).cpus;
  const auto other = RunUntilItIsDecided(Guaranteed("other", 1));
  ASSERT_TRUE(IsOk(other.status()));
  for (int instance = 0; instance < 3; ++instance) {
    EXPECT_EQ(ReadLine(CpusetOf(*pod).path + "/cpuset.cpus.partition"), "isolated");
    EXPECT_EQ(EffectiveCpusOf(*pod), cpus);
    EXPECT_EQ(ReadLine("/sys/fs/cgroup/cpuset.cpus.isolated"), ToString(cpus));
    EXPECT_FALSE(EffectiveCpusOf(*other).Intersects(cpus));
    // Kubelet recreates a container when the former one has ended.
    ASSERT_TRUE(IsOk(kubelet_.RemoveContainer(pod->container_id)));
    ASSERT_TRUE(Await([&] { return IsDecided(MakeAgain(*pod)); }, kPatience));
  }
  ASSERT_TRUE(IsOk(kubelet_.RemovePod(*pod)));
  EXPECT_EQ(ReadLine("/sys/fs/cgroup/cpuset.cpus.isolated"), "");
  for (std::filesystem::path above = std::filesystem::path(CpusetOf(*other).path).parent_path();
       above != "/sys/fs/cgroup"; above = above.parent_path()) {
    EXPECT_EQ(ReadLine(above / "cpuset.cpus.exclusive"), "") << above;
  }
}

}  // namespace
}  // namespace qrm::test::partition_test
