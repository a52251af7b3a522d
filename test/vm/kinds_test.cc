// Memory of a kind that a role wishes, on a machine whose node 2 has memory and no CPUs.
#include <string>

#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::kinds_test {
namespace {

class KindsTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (!IsSkipped() &&
        (!CpusOfNode(kFar).Empty() || ReadLine("/sys/devices/system/node/possible") != "0-2")) {
      GTEST_SKIP() << "this machine has no memory without CPUs; run scripts/vm.sh --machine hmat";
    }
  }
  static constexpr int kFar = 2;
};

TEST_F(KindsTest, AContainersPagesAreInTheMemoryThatItsRoleWishesBesideItsCpus) {
  StartNode(
      "topology-policy: single-numa-node\n"
      "plugins:\n"
      "  cpu: {static: true, reserved-cpus: \"0\"}\n"
      "  memory: {roles: {cold: {kinds: [cxl, cpu-less]}}}\n");
  PodSpec spec = Guaranteed("cold", 2);
  spec.labels = {{"katalyst.kubewharf.io/pod_role", "cold"}};
  const auto pod = Run(spec);
  ASSERT_TRUE(IsOk(pod.status()));
  EXPECT_EQ(CpusetOf(*pod).mems, (NumaMask{kFar}));
  EXPECT_TRUE(CpusetOf(*pod).cpus.IsSubsetOf(CpusOfNode(1))) << ToString(CpusetOf(*pod).cpus);
  ASSERT_TRUE(Fill(*pod));
  EXPECT_TRUE(LiesOn(*pod, {kFar}));
}

}  // namespace
}  // namespace qrm::test::kinds_test
