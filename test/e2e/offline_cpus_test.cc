// CPUs that go offline and return while containers run, on a simulated runtime whose kernel has
// cgroup v1.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"

namespace qrm::test::offline_cpus_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";
const CpuSet kAll = {0, 1, 2, 3, 4, 5};

class OfflineCpusTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteSysfsMachine(machine_, {.cpus = kAll.Count()});
    std::ofstream(dir_ / "qrmd.yaml")
        << "machine: \"fsroot:" << machine_.string()
        << "\"\n"
           "plugins: {cpu: {pools: {online: {cpus: \"4-5\", roles: [online]}}, "
           "roles: {service: {}}}}\n";
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = fs::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu",
                      .reconcile_period = "100ms"});
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }

  void SetOffline(const CpuSet& cpus) {
    runtime_.SetOffline(cpus);
    SetOnline(machine_, kAll - cpus);
  }
  Status Run(const std::string& name, const std::string& role, int64_t cpus) {
    return runtime_.RunPod({.name = name,
                            .uid = "uid-" + name,
                            .labels = {{kRoleLabel, role}},
                            .container = {.milli_cpus = cpus * 1000}});
  }
  std::string Cpus(const std::string& pod) {
    const auto options = runtime_.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    return resources == options.end() ? "" : resources->value("cpusetCpus", "");
  }
  std::string LastProblem() {
    const auto status = node_->GetStatus();
    return status.ok() ? status->reconcile().last_problem() : "";
  }

  const TempDir dir_;
  const fs::path machine_ = dir_ / "machine";
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(OfflineCpusTest, ContainerThatIsMadeMeanwhileRunsOnTheOthersOfItsPool) {
  SetOffline({4});
  ASSERT_TRUE(IsOk(Run("web", "online", 1)));
  EXPECT_EQ(Cpus("web"), "5");
}

TEST_F(OfflineCpusTest, NoContainerGetsOneForItself) {
  SetOffline({0, 1});
  ASSERT_TRUE(IsOk(Run("owner", "service", 1)));
  EXPECT_EQ(Cpus("owner"), "2");
}

TEST_F(OfflineCpusTest, ContainerOfAPoolThatIsOfflineIsRejectedWithASentence) {
  SetOffline({4, 5});
  EXPECT_THAT(MessageOf(Run("web", "online", 1)), HasSubstr("pool online has no online CPU"));
}

TEST_F(OfflineCpusTest, RunningContainersFollowThemThereAndBack) {
  ASSERT_TRUE(IsOk(Run("web", "online", 1)));
  ASSERT_TRUE(IsOk(Run("owner", "service", 2)));
  ASSERT_EQ(Cpus("owner"), "0-1");
  SetOffline({1, 5});
  EXPECT_TRUE(Await([&] { return runtime_.updates() == 2; })) << "their values are sent again";
  EXPECT_EQ(Cpus("web"), "4");
  EXPECT_EQ(Cpus("owner"), "0");
  EXPECT_TRUE(Await([&] {
    return LastProblem().find("lacks its exclusive CPUs 1, which are offline") != std::string::npos;
  })) << LastProblem();
  SetOffline({});
  EXPECT_TRUE(Await([&] { return Cpus("web") == "4-5" && Cpus("owner") == "0-1"; }))
      << Cpus("web") << " and " << Cpus("owner");
  EXPECT_TRUE(Await([&] { return LastProblem().empty(); })) << LastProblem();
}

TEST_F(OfflineCpusTest, AllocatableFollowsThemThereAndBack) {
  const auto listed = [this] {
    CpuSet cpus;
    const auto answer = node_->GetAllocatableResources();
    for (const int64_t cpu : answer->cpu_ids()) {
      cpus.Add(static_cast<int>(cpu));
    }
    return std::pair(cpus, answer->resources(0).aggregated_allocatable_quantity());
  };
  const auto await = [&](const CpuSet& cpus) {
    return Await([&] { return listed() == std::pair(cpus, static_cast<double>(cpus.Count())); },
                 std::chrono::seconds(15), std::chrono::milliseconds(50));
  };
  EXPECT_TRUE(await(kAll));
  SetOffline({1, 5});
  EXPECT_TRUE(await({0, 2, 3, 4}));
  SetOffline({});
  EXPECT_TRUE(await(kAll));
}

TEST_F(OfflineCpusTest, OwnerOfExclusiveCpusIsRecreatedOnTheCpusThatAreOnline) {
  ASSERT_TRUE(IsOk(Run("owner", "service", 2)));
  SetOffline({1});
  ASSERT_TRUE(IsOk(runtime_.EndContainer("owner", "container0")));
  ASSERT_TRUE(IsOk(runtime_.AddContainer("owner", {.milli_cpus = 2000})));
  EXPECT_EQ(Cpus("owner"), "0");
  ASSERT_TRUE(IsOk(runtime_.EndContainer("owner", "container0")));
  SetOffline({0, 1});
  EXPECT_THAT(MessageOf(runtime_.AddContainer("owner", {.milli_cpus = 2000})),
              HasSubstr("its CPUs are 0-1, of which 0-1 are offline"));
}

}  // namespace
}  // namespace qrm::test::offline_cpus_test
