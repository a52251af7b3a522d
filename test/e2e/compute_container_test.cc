// What a compute driver gives, in the kernel before a program's first instruction: beside a real
// containerd; scripts/containerd.sh starts it and this test.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_driver.h"

namespace qrm::test {
namespace {

using testing::Contains;
using testing::StartsWith;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string AllowedCpus(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Cpus_allowed_list:")) {
      return line.substr(line.find_first_not_of(" \t", line.find(':') + 1));
    }
  }
  return "";
}

// This machine's first two CPUs; the driver gives the last of those that it may.
class ComputeContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/compute-qrmd.yaml")
        << "plugins: {cpu: {}}\ncompute-drivers: {scripted: {namespaces: [\"*\"]}}\n";
    ASSERT_TRUE(IsOk(node_.Start(1)));
    started_ = true;
    StartDriver();
  }
  void TearDown() override {
    if (started_) {
      EXPECT_TRUE(IsOk(kubelet_.RemoveAllPods()));
      EXPECT_TRUE(IsOk(node_.Stop()));
    }
  }

  void StartDriver() {
    DriverScript script;
    script.admit = [](const auto& request, auto& response) {
      const CpuSet available = CpuSet::Parse(request.availablecpus()).value_or(CpuSet());
      response.mutable_rset()->set_cpuset(ToString(CpuSet{available.Last()}));
      response.mutable_rset()->set_exclusive(true);
      response.set_mems("0");
      (*response.mutable_envs())["GIVEN"] = "by the driver";
      return OkStatus();
    };
    script.add = [this](const auto& request, auto&) {
      const MutexLock lock(mutex_);
      cgroup_ = request.cgroup();
      others_before_start_ = AllowedCpus(shared_pid_);
      return OkStatus();
    };
    driver_ = std::make_unique<ScriptedDriver>(work_dir_ + "/compute/plugins/scripted.sock",
                                               std::move(script));
    ASSERT_TRUE(IsOk(node_.WaitForPlugins(2)));
  }
  pid_t PidOf(const RunningPod& pod) {
    const auto info = kubelet_.Inspect(pod.container_id);
    return info.ok() ? (*info)["pid"].get<pid_t>() : 0;
  }
  StatusOr<RunningPod> RunOnDriver() {
    return kubelet_.RunPod(
        {.name = "web",
         .uid = "uid-web",
         .annotations = {{"cci.qrm.io/driver", "scripted"}},
         .container = {
             .name = "main", .milli_cpus = 1000, .memory_bytes = 64 << 20, .cpu_limit = true}});
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  bool started_ = false;
  Mutex mutex_;
  pid_t shared_pid_ QRM_GUARDED_BY(mutex_) = 0;
  std::string others_before_start_ QRM_GUARDED_BY(mutex_);
  std::string cgroup_ QRM_GUARDED_BY(mutex_);
  Node node_{{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
              .work_dir = work_dir_ + "/compute",
              .config = work_dir_ + "/compute-qrmd.yaml",
              .nri_socket = FromEnvironment("QRM_NRI_SOCKET"),
              .cri_socket = FromEnvironment("QRM_CRI_SOCKET"),
              .builtin_plugins = "cpu",
              .reconcile_period = "10m"}};
  std::unique_ptr<ScriptedDriver> driver_;
  Kubelet kubelet_{{.socket = FromEnvironment("QRM_CRI_SOCKET"),
                    .image = FromEnvironment("QRM_IMAGE"),
                    .cgroup_parent = FromEnvironment("QRM_CGROUP_PARENT"),
                    .log_directory = work_dir_ + "/logs"}};
};

TEST_F(ComputeContainerTest, AGrantHoldsFromTheFirstInstructionAndOthersLeftBefore) {
  const auto shared = kubelet_.RunPod(
      {.name = "shared", .uid = "uid-shared", .container = {.name = "main", .milli_cpus = 100}});
  ASSERT_TRUE(IsOk(shared.status()));
  {
    const MutexLock lock(mutex_);
    shared_pid_ = PidOf(*shared);
    ASSERT_EQ(AllowedCpus(shared_pid_), "0-1");
  }

  const auto web = RunOnDriver();

  ASSERT_TRUE(IsOk(web.status()));
  ASSERT_TRUE(Await([&] {
    const auto log = kubelet_.ReadLog(*web);
    return log.ok() && !log->empty() && log->back().starts_with("cpus ");
  }));
  const auto log = kubelet_.ReadLog(*web);
  EXPECT_THAT(*log, Contains("env GIVEN=by the driver"));
  EXPECT_THAT(*log, Contains(StartsWith("cpus 1 mems 0 ")));
  const MutexLock lock(mutex_);
  EXPECT_EQ(others_before_start_, "0") << "while the driver was told of the start";
  EXPECT_EQ(AllowedCpus(shared_pid_), "0");
  EXPECT_TRUE(std::filesystem::exists("/sys/fs/cgroup/cpuset" + cgroup_) ||
              std::filesystem::exists("/sys/fs/cgroup" + cgroup_))
      << cgroup_;
}

TEST_F(ComputeContainerTest, OthersReturnWhenThePodIsGone) {
  const auto shared = kubelet_.RunPod(
      {.name = "shared", .uid = "uid-shared", .container = {.name = "main", .milli_cpus = 100}});
  ASSERT_TRUE(IsOk(shared.status()));
  const auto web = RunOnDriver();
  ASSERT_TRUE(IsOk(web.status()));
  const pid_t pid = PidOf(*shared);
  ASSERT_EQ(AllowedCpus(pid), "0");
  ASSERT_TRUE(IsOk(kubelet_.RemovePod(*web)));
  EXPECT_TRUE(Await([&] { return AllowedCpus(pid) == "0-1"; })) << AllowedCpus(pid);
  EXPECT_THAT(driver_->calls(), Contains(StartsWith("remove main ")));
}

}  // namespace
}  // namespace qrm::test
