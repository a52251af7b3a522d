// CPUs that go offline and return while containers run, on a kernel with cgroup v2.
#include <chrono>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::offline_test {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};
constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";

class OfflineTest : public MachineTest {
 protected:
  // The pool has the last node of scripts/vm.sh's 4n, owners get CPUs of the others.
  void SetUp() override {
    MachineTest::SetUp();
    if (!IsSkipped()) {
      StartNode(
          "plugins: {cpu: {static: true, reserved-cpus: \"0-1\", pools: {online: {cpus: \"12-15\", "
          "roles: [web]}}}, memory: {static: true}}\n");
    }
  }
  void TearDown() override {
    for (const int cpu : CpuSet(offline_)) {
      SetOnline(cpu);
    }
    MachineTest::TearDown();
  }

  static std::string Switch(int cpu) {
    return "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/online";
  }
  void SetOffline(int cpu) {
    std::ofstream(Switch(cpu)) << 0;
    ASSERT_EQ(ReadLine(Switch(cpu)), "0");
    offline_.Add(cpu);
  }
  void SetOnline(int cpu) {
    std::ofstream(Switch(cpu)) << 1;
    ASSERT_EQ(ReadLine(Switch(cpu)), "1");
    offline_.Remove(cpu);
  }
  StatusOr<RunningPod> RunWeb(const std::string& name) {
    return Run({.name = name,
                .uid = "uid-" + name,
                .labels = {{kRoleLabel, "web"}},
                .container = {.milli_cpus = 100}});
  }
  std::string LastProblem() {
    const auto status = node_->GetStatus();
    return status.ok() ? status->reconcile().last_problem() : MessageOf(status.status());
  }

 private:
  CpuSet offline_;
};

TEST_F(OfflineTest, RunningContainersFollowThemThereAndBack) {
  const auto owner = RunGuaranteed("owner", 2);
  ASSERT_TRUE(IsOk(owner.status()));
  const auto web = RunWeb("web");
  ASSERT_TRUE(IsOk(web.status()));
  const CpuSet own = CpusetOf(*owner).cpus;
  ASSERT_EQ(own.Count(), 2);
  ASSERT_EQ(EffectiveCpusOf(*web), (CpuSet{12, 13, 14, 15}));

  SetOffline(own.Last());
  SetOffline(15);

  EXPECT_TRUE(Await([&] { return EffectiveCpusOf(*owner) == CpuSet{own.First()}; }, kPatience))
      << ToString(EffectiveCpusOf(*owner));
  EXPECT_TRUE(Await([&] { return CpusetOf(*web).cpus == CpuSet{12, 13, 14}; }, kPatience))
      << ToString(CpusetOf(*web).cpus);
  const std::string missing =
      "without its CPUs " + std::to_string(own.Last()) + ", which are offline";
  EXPECT_TRUE(Await([&] { return LastProblem().find(missing) != std::string::npos; }, kPatience))
      << LastProblem();
  const auto told = node_->Qrmctl({"status"});
  ASSERT_TRUE(IsOk(told.status()));
  EXPECT_THAT(*told, HasSubstr(missing));

  SetOnline(own.Last());
  SetOnline(15);

  EXPECT_TRUE(Await([&] { return EffectiveCpusOf(*owner) == own; }, kPatience))
      << ToString(EffectiveCpusOf(*owner));
  EXPECT_TRUE(Await([&] { return EffectiveCpusOf(*web) == CpuSet{12, 13, 14, 15}; }, kPatience))
      << ToString(EffectiveCpusOf(*web));
  EXPECT_TRUE(Await([&] { return LastProblem().empty(); }, kPatience)) << LastProblem();
}

TEST_F(OfflineTest, NewContainersGetNoOfflineCpus) {
  SetOffline(2);
  SetOffline(12);
  const auto owner = RunGuaranteed("owner", 1);
  ASSERT_TRUE(IsOk(owner.status()));
  EXPECT_FALSE(CpusetOf(*owner).cpus.Has(2));
  EXPECT_EQ(CpusetOf(*owner).cpus.Count(), 1);
  const auto web = RunWeb("web");
  ASSERT_TRUE(IsOk(web.status()));
  EXPECT_EQ(CpusetOf(*web).cpus, (CpuSet{13, 14, 15}));
}

TEST_F(OfflineTest, APoolFollowsItsMoveToAnotherNode) {
  const auto web = RunWeb("web");
  ASSERT_TRUE(IsOk(web.status()));
  ASSERT_EQ(EffectiveCpusOf(*web), (CpuSet{12, 13, 14, 15}));
  ASSERT_TRUE(IsOk(node_->Qrmctl({"pool", "set", "online=8-11"}).status()));
  EXPECT_TRUE(Await([&] { return EffectiveCpusOf(*web) == CpuSet{8, 9, 10, 11}; }, kPatience))
      << ToString(EffectiveCpusOf(*web));
}

}  // namespace
}  // namespace qrm::test::offline_test
