// Pools that follow load, a container that gets CPUs which others use, and the CPUs and memory
// after a resize in place, on a machine with several NUMA nodes.
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/cpuset_watcher.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/vm/machine_test.h"

namespace qrm::test::policy_test {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";

class PolicyTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    if (!IsSkipped()) {
      StartNode(fmt::format(R"(
plugins:
  cpu:
    reserved-cpus: "0"
    rules:
      - {{select: {{label: {{plane: data}}}}, grant: dataplane}}
      - {{select: {{role: web}}, pool: web}}
      - {{select: {{role: batch}}, pool: batch}}
    grants: {{dataplane: {{numa: fewest, share-numa-with: ["*"]}}}}
    pools:
      web:
        size: {{min: 2, max: 8, per: advice, shrink-after: 3s}}
        borrow: {{idle: all}}
        lend: {{to: [batch], keep: 1}}
      batch: {{size: {{fixed: 1}}}}
      default: {{size: {{fixed: 1}}}}
    advisor: {{use: {{every: 1s, cgroup-root: /sys/fs/cgroup{}}}}}
  memory:
    roles: {{db: {{moves: true, share-numa-with: ["*"]}}}}
)",
                            FromEnvironment("QRM_CGROUP_PARENT")));
    }
  }

  RunningPod Start(const PodSpec& spec) {
    auto pod = Run(spec);
    EXPECT_TRUE(IsOk(pod.status()));
    return pod.ok() ? *std::move(pod) : RunningPod{.spec = spec};
  }
  RunningPod StartInPool(const std::string& name, const std::string& role) {
    return Start({.name = name,
                  .uid = "uid-" + name,
                  .labels = {{kRoleLabel, role}},
                  .container = {.milli_cpus = 100}});
  }
  static PodSpec Polling(int cpus) {
    PodSpec spec = Guaranteed("polling", cpus);
    spec.labels = {{"plane", "data"}};
    return spec;
  }
  /// Makes two threads of the container compute, or stop.
  bool TurnLoad(const RunningPod& pod) {
    return ::kill(static_cast<pid_t>(PidOf(pod)), SIGHUP) == 0;
  }
  /// The CPUs that a pool owns.
  CpuSet CpusOfPool(const std::string& name) {
    const auto told = node_->Qrmctl({"pool", "get", "-o", "json"});
    EXPECT_TRUE(IsOk(told.status()));
    const auto document = nlohmann::json::parse(told.value_or("{}"), nullptr, false);
    for (const auto& pool : document.value("pools", nlohmann::json::array())) {
      if (pool.value("name", "") == name) {
        return CpuSet::Parse(pool.value("cpus", "")).value_or(CpuSet());
      }
    }
    return {};
  }
  bool HasLogged(const std::string& event) const {
    std::ifstream log(node_dir_ + "/logs/qrmd.log");
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    return text.find(event) != std::string::npos;
  }
  bool Resize(const RunningPod& pod, const ContainerSpec& to) {
    return bool(IsOk(kubelet_.Resize(pod.container_id, ValuesFor(to))));
  }
};

TEST_F(PolicyTest, PoolGrowsWithTheLoadOfItsContainersAndShrinksWhenItEnds) {
  const RunningPod web = StartInPool("web", "web");
  EXPECT_EQ(CpusOfPool("web").Count(), 2);
  ASSERT_TRUE(TurnLoad(web));
  EXPECT_TRUE(Await([&] { return CpusOfPool("web").Count() >= 3; }, kPatience))
      << "two threads compute on " << ToString(CpusOfPool("web"));
  const CpuSet large = CpusOfPool("web");
  EXPECT_TRUE(Await([&] { return large.IsSubsetOf(CpusetOf(web).cpus); }, kPatience))
      << ToString(CpusetOf(web).cpus);
  ASSERT_TRUE(TurnLoad(web));
  EXPECT_TRUE(Await([&] { return CpusOfPool("web").Count() == 2; }, kPatience))
      << "no container uses " << ToString(CpusOfPool("web"));
  EXPECT_TRUE(CpusOfPool("web").IsSubsetOf(large)) << "it keeps some of its CPUs";
}

TEST_F(PolicyTest, ContainerTakesCpusThatOthersUseWithoutEverSharingThem) {
  const std::vector<RunningPod> others = {StartInPool("web0", "web"), StartInPool("web1", "web"),
                                          StartInPool("batch", "batch")};
  ASSERT_TRUE(TurnLoad(others[0]));
  ASSERT_TRUE(Await([&] { return CpusetOf(others[0]).cpus.Count() > 8; }, kPatience))
      << "it does not borrow idle CPUs";
  const CpuSet used = CpusetOf(others[0]).cpus;
  CpusetWatcher watcher(
      {.root = CpusetsBelow(FromEnvironment("QRM_CGROUP_PARENT")),
       .owner = "uid-polling",
       .cpus = 4,
       .others = {others[0].container_id, others[1].container_id, others[2].container_id}});

  const RunningPod owner = Start(Polling(4));

  EXPECT_TRUE(Await([&] { return CpusetOf(owner).cpus.Count() == 4; }, kPatience));
  watcher.Stop();
  EXPECT_TRUE(CpusetOf(owner).cpus.IsSubsetOf(used)) << "no container had to leave";
  EXPECT_GT(watcher.looks_at_owner(), 0);
  EXPECT_EQ(watcher.overlaps(), std::vector<std::string>());
}

TEST_F(PolicyTest, ContainerThatIsResizedInPlaceKeepsTheCpusThatItHas) {
  const RunningPod pod = Start(Polling(4));
  const CpuSet four = CpusetOf(pod).cpus;
  ASSERT_EQ(four.Count(), 4);
  ASSERT_TRUE(Resize(pod, Polling(6).container));
  EXPECT_TRUE(Await([&] { return CpusetOf(pod).cpus.Count() == 6; }, kPatience));
  const CpuSet six = CpusetOf(pod).cpus;
  EXPECT_TRUE(four.IsSubsetOf(six)) << ToString(four) << " is not among " << ToString(six);
  ASSERT_TRUE(Resize(pod, Polling(2).container));
  EXPECT_TRUE(Await([&] { return CpusetOf(pod).cpus == four; }, kPatience))
      << "it gives up the added CPUs, and keeps the CPUs of its first start";
}

TEST_F(PolicyTest, MemoryThatNoLongerFitsItsNodeMovesWithItsPages) {
  const auto database = [](const std::string& name, int64_t mebibytes) {
    PodSpec spec = Guaranteed(name, 1, mebibytes);
    spec.labels = {{kRoleLabel, "db"}};
    return spec;
  };
  const RunningPod moves = Start(database("moves", 200));
  const RunningPod stays = Start(database("stays", 300));
  const NumaMask before = CpusetOf(moves).mems;
  ASSERT_EQ(before.Count(), 1);
  ASSERT_EQ(CpusetOf(stays).mems, before);
  ASSERT_TRUE(Fill(moves));
  ASSERT_TRUE(LiesOn(moves, before));

  ASSERT_TRUE(Resize(moves, database("moves", 750).container));

  EXPECT_TRUE(Await([&] { return CpusetOf(moves).mems != before; }, kPatience));
  const NumaMask after = CpusetOf(moves).mems;
  EXPECT_EQ(after.Count(), 1);
  EXPECT_TRUE(Await([&] { return bool(LiesOn(moves, after)); }, kPatience));
  EXPECT_EQ(CpusetOf(stays).mems, before);
  EXPECT_TRUE(
      Await([&] { return HasLogged("memory moved to the container's NUMA nodes"); }, kPatience));
}

}  // namespace
}  // namespace qrm::test::policy_test
