// CPUs that a pool lends, by the work of containers: the owner's load has them back within a
// second. Beside a real containerd; scripts/containerd.sh starts it and this test.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/await.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"

namespace qrm::test::lending_container_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::duration;
using std::chrono::steady_clock;

/// Seconds of CPU that all threads of a process have had. Source: proc_pid_stat(5), utime and
/// stime.
double CpuTimeOf(pid_t pid) {
  constexpr int kFieldsBefore = 11;  // from the state on, which follows the name in parentheses
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) {
    fields >> skipped;
  }
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// The work of two processes in the same time, in CPUs.
struct Throughput {
  double batch = 0;
  double owner = 0;
};

class LendingContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/lending-qrmd.yaml")
        << "plugins: {cpu: {default-pool: web, pools: {web: {cpus: \"1\", lend: {to: [batch]}}, "
           "batch: {cpus: \"0\", roles: [batch]}}}}\n";
    ASSERT_TRUE(IsOk(node_.Start(1)));
  }
  void TearDown() override {
    EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
    EXPECT_TRUE(IsOk(node_.Stop()));
  }

  /// Runs a container and returns its process.
  pid_t Run(const std::string& name, int64_t milli_cpus) {
    const auto pod = kubelet_.RunPod({.name = name,
                                      .uid = "uid-" + name,
                                      .labels = {{"katalyst.kubewharf.io/pod_role", name}},
                                      .container = {.name = "main", .milli_cpus = milli_cpus}});
    EXPECT_TRUE(IsOk(pod.status()));
    if (!pod.ok()) {
      return 0;
    }
    const auto info = kubelet_.Inspect(pod->container_id);
    return info.ok() ? (*info)["pid"].get<pid_t>() : 0;
  }
  /// Gives all BestEffort pods together the weight that kubelet gives them.
  void WeighBestEffort() const {
    const std::string group = FromEnvironment("QRM_CGROUP_PARENT") + "/kubepods/besteffort/";
    for (const auto& [file, least] : {std::pair("/sys/fs/cgroup/cpu" + group + "cpu.shares", "2"),
                                      std::pair("/sys/fs/cgroup" + group + "cpu.weight", "1")}) {
      if (fs::exists(file)) {
        std::ofstream(file) << least;
        return;
      }
    }
    FAIL() << "no cgroup of BestEffort pods below " << group;
  }

  Throughput Measure(std::chrono::milliseconds time) const {
    const Throughput before{CpuTimeOf(batch_), CpuTimeOf(owner_)};
    const auto begin = steady_clock::now();
    Await([&] { return steady_clock::now() - begin >= time; }, 2 * time);
    const double seconds = duration<double>(steady_clock::now() - begin).count();
    return {(CpuTimeOf(batch_) - before.batch) / seconds,
            (CpuTimeOf(owner_) - before.owner) / seconds};
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  Kubelet kubelet_{KubeletBesideContainerd()};
  Node node_{QrmdBesideContainerd("lending", {.builtin_plugins = "cpu"})};
  pid_t batch_ = 0;
  pid_t owner_ = 0;
};

TEST_F(LendingContainerTest, ABestEffortContainerYieldsWithinASecondOfTheOwnersLoad) {
  batch_ = Run("batch", 0);
  owner_ = Run("web", 1000);
  ASSERT_NE(batch_, 0);
  ASSERT_NE(owner_, 0);
  WeighBestEffort();
  ASSERT_EQ(::kill(batch_, SIGHUP), 0);
  EXPECT_TRUE(Await([&] { return Measure(std::chrono::milliseconds(300)).batch > 1.7; }))
      << "it does not use the CPU that is lent";

  ASSERT_EQ(::kill(owner_, SIGHUP), 0);
  EXPECT_TRUE(Await([&] { return Measure(std::chrono::milliseconds(200)).owner > 0.9; },
                    std::chrono::seconds(1)))
      << "the owner does not have its CPU back";
  const Throughput both = Measure(std::chrono::seconds(2));
  RecordProperty("batch", fmt::format("{:.2f}", both.batch));
  RecordProperty("owner", fmt::format("{:.2f}", both.owner));
  EXPECT_GT(both.owner, 0.9) << "batch has " << both.batch;
  EXPECT_LT(both.batch, 1.1);
  EXPECT_GT(both.batch, 0.8) << "it keeps its CPU";

  ASSERT_EQ(::kill(owner_, SIGHUP), 0);
  EXPECT_TRUE(Await([&] { return Measure(std::chrono::milliseconds(300)).batch > 1.7; }))
      << "idle CPUs are not used again";
}

}  // namespace
}  // namespace qrm::test::lending_container_test
