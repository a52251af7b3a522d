// Hugepages of one NUMA node, and containers that ask for them.
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/vm/machine_test.h"

namespace qrm::test::hugepages_test {
namespace {

using testing::HasSubstr;

constexpr int kNodeWithPages = 2;

class HugepagesTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    SetPages(16);
    const std::string socket = work_dir_ + "/pods.sock";
    specs_ = std::make_unique<ScriptedKubelet>(socket);
    StartNode(
        "topology-policy: single-numa-node\n"
        "plugins: {cpu: {static: true, reserved-cpus: \"0\"}, memory: {static: true}}\n"
        "kubelet-pods-socket: " +
        socket + "\n");
  }
  void TearDown() override {
    MachineTest::TearDown();
    specs_.reset();
    SetPages(0);
  }

  static void SetPages(int count) {
    const std::string file = "/sys/devices/system/node/node" + std::to_string(kNodeWithPages) +
                             "/hugepages/hugepages-2048kB/nr_hugepages";
    std::ofstream(file) << count;
    ASSERT_EQ(ReadLine(file), std::to_string(count));
  }
  /// A Guaranteed pod of one CPU, 64 MiB and so many hugepages, as kubelet reports it.
  StatusOr<RunningPod> RunWithPages(const std::string& name, const std::string& pages) {
    const PodSpec spec = Guaranteed(name, 1);
    ::k8s::io::api::core::v1::Pod pod;
    pod.mutable_metadata()->set_uid(spec.uid);
    pod.mutable_metadata()->set_namespace_(spec.pod_namespace);
    pod.mutable_metadata()->set_name(name);
    auto& container = *pod.mutable_spec()->add_containers();
    container.set_name(spec.container.name);
    for (const auto& [resource, amount] :
         StringMap{{"cpu", "1"}, {"memory", "64Mi"}, {"hugepages-2Mi", pages}}) {
      (*container.mutable_resources()->mutable_requests())[resource].set_string(amount);
      (*container.mutable_resources()->mutable_limits())[resource].set_string(amount);
    }
    specs_->Put(spec.uid, pod.SerializeAsString());
    return Run(spec);
  }

 private:
  std::unique_ptr<ScriptedKubelet> specs_;
};

TEST_F(HugepagesTest, AContainerIsOnTheNodeThatHasThem) {
  const auto pod = RunWithPages("first", "24Mi");
  ASSERT_TRUE(IsOk(pod.status()));
  const manager::CgroupCpuset cpuset = CpusetOf(*pod);
  EXPECT_EQ(cpuset.mems, NumaMask{kNodeWithPages});
  EXPECT_TRUE(cpuset.cpus.IsSubsetOf(CpusOfNode(kNodeWithPages))) << ToString(cpuset.cpus);
  EXPECT_THAT(MessageOf(RunWithPages("second", "16Mi").status()), HasSubstr("hugepages-2Mi"))
      << "8 MiB are left";
}

}  // namespace
}  // namespace qrm::test::hugepages_test
