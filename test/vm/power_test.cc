// What is left when the machine loses its power in the middle of admissions, and after an orderly
// restart. Each test is one of the steps of test/vm/power.sh, on a disk that is kept between them.
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::power_test {
namespace {

// An emulated machine needs longer than the default for a pod to return.
constexpr char kConfig[] =
    "pod-ended-after: 10m\n"
    "plugins: {memory: {static: true}}\n";
/// For a plugin in a process, which gets its allocations back by the resync.
constexpr char kCpuConfig[] = "static: true\nreserved-cpus: \"0\"\n";

/// What was reported of a running pod to a process outside of the machine.
struct Acknowledged {
  RunningPod pod;
  std::string cpus;
  std::string mems;
};

class PowerTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (!IsSkipped()) {
      node_dir_ = FromEnvironment("QRM_VM_STATE") + "/node";
      StartNode(kConfig, "memory");
      const std::string config = work_dir_ + "/cpu.yaml";
      std::ofstream(config) << kCpuConfig;
      ASSERT_TRUE(IsOk(node_->StartPlugin("cpu", "cpu", config)));
    }
  }
  // The containers run until the machine ends.
  void TearDown() override {}

  void Acknowledge(const RunningPod& pod) {
    const manager::CgroupCpuset cpuset = CpusetOf(pod);
    std::cout << "admitted " << pod.spec.name << " " << pod.sandbox_id << " " << pod.container_id
              << " " << pod.sandboxes << " " << pod.containers << " " << ToString(cpuset.cpus)
              << " " << ToString(cpuset.mems) << "\n"
              << std::flush;
  }
  /// The lines above, which test/vm/power.sh hands in.
  static std::vector<Acknowledged> ReadAcknowledged() {
    std::ifstream lines(FromEnvironment("QRM_VM_STATE") + "/acknowledged");
    std::vector<Acknowledged> all;
    std::string word;
    std::string name;
    while (lines >> word >> name) {
      Acknowledged one{.pod = {.spec = Guaranteed(name, 1)}};
      lines >> one.pod.sandbox_id >> one.pod.container_id >> one.pod.sandboxes >>
          one.pod.containers >> one.cpus >> one.mems;
      all.push_back(std::move(one));
    }
    return all;
  }
};

TEST_F(PowerTest, AdmitsUntilThePowerIsCut) {
  for (int i = 1; i <= 15; ++i) {
    const auto pod = RunGuaranteed("p" + std::to_string(i), 1);
    ASSERT_TRUE(IsOk(pod.status()));
    Acknowledge(*pod);
  }
}

TEST_F(PowerTest, AcknowledgedAllocationsAreRestored) {
  const std::vector<Acknowledged> all = ReadAcknowledged();
  ASSERT_FALSE(all.empty());
  std::cout << node_->Qrmctl({"pods"}).value_or("") << "\n";
  for (Acknowledged one : all) {
    ASSERT_TRUE(IsOk(kubelet_.ReplaceSandbox(one.pod)));
    Acknowledge(one.pod);
    const manager::CgroupCpuset cpuset = CpusetOf(one.pod);
    EXPECT_EQ(ToString(cpuset.cpus), one.cpus) << one.pod.spec.name;
    EXPECT_EQ(ToString(cpuset.mems), one.mems) << one.pod.spec.name;
  }
}

}  // namespace
}  // namespace qrm::test::power_test
