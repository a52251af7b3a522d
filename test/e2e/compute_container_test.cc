// A compute driver's CPUs are in the kernel before a program's first instruction: beside a real
// containerd; scripts/containerd.sh starts it and this test.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/e2e/process.h"
#include "test/support/await.h"
#include "test/support/environment.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_driver.h"

namespace qrm::test::compute_container_test {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;

std::string AllowedCpus(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Cpus_allowed_list:")) {
      return line.substr(line.find_first_not_of(" \t", line.find(':') + 1));
    }
  }
  return "";
}

// This machine's first two CPUs; the driver gives the last CPU that it is offered.
class ComputeContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(work_dir_, "") << "run by scripts/containerd.sh";
    std::ofstream(work_dir_ + "/compute-qrmd.yaml")
        << "plugins: {cpu: {}}\ncompute-drivers:\n"
        << "  scripted: {namespaces: [\"*\"]}\n  python: {namespaces: [\"*\"]}\n";
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
      if (request.cci_spec() == "shares") {
        auto& own = *response.mutable_rset()->add_parts();
        own.set_cpuset(response.rset().cpuset());
        own.set_exclusive(true);
        response.mutable_rset()->add_parts();  // all of the pool
        response.mutable_rset()->set_exclusive(false);
      }
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
  /// The program's output once it knows its CPUs.
  std::vector<std::string> LogOf(const RunningPod& pod) {
    std::vector<std::string> lines;
    EXPECT_TRUE(Await([&] {
      lines = kubelet_.ReadLog(pod).value_or(std::vector<std::string>{});
      return !lines.empty() && lines.back().starts_with("cpus ");
    }));
    return lines;
  }
  pid_t PidOf(const RunningPod& pod) {
    const auto info = kubelet_.Inspect(pod.container_id);
    return info.ok() ? (*info)["pid"].get<pid_t>() : 0;
  }
  /// The driver in Python, of the published protos; null where Python has no gRPC.
  std::unique_ptr<Process> StartPythonDriver() {
    auto started = Process::Start(
        {QRM_SOURCE_DIR "/test/interop/python.sh", work_dir_ + "/compute/python",
         QRM_SOURCE_DIR "/test/interop/cci/driver.py", work_dir_ + "/compute/plugins/python.sock"},
        work_dir_ + "/python-driver.log");
    EXPECT_TRUE(IsOk(started.status()));
    std::unique_ptr<Process> process = *std::move(started);
    const auto plugins = [this] { return node_.Qrmctl({"plugins"}).value_or(""); };
    EXPECT_TRUE(Await([&] {
      return !process->Running() || plugins().find("cci.qrm.io/python") != std::string::npos;
    })) << process->LastOutput();
    return process->Running() ? std::move(process) : nullptr;
  }
  StatusOr<RunningPod> RunShared() {
    return kubelet_.RunPod(
        {.name = "shared", .uid = "uid-shared", .container = {.name = "main", .milli_cpus = 100}});
  }
  StatusOr<RunningPod> RunOnDriver(const std::string& name, const std::string& driver = "scripted",
                                   const std::string& spec = "") {
    return kubelet_.RunPod(
        {.name = name,  // and of its log
         .uid = "uid-" + name,
         .annotations = {{"cci.qrm.io/driver", driver}, {"cci.qrm.io/spec", spec}},
         .container = {
             .name = "main", .milli_cpus = 1000, .memory_bytes = 64 << 20, .cpu_limit = true}});
  }

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR");
  bool started_ = false;
  Mutex mutex_;
  pid_t shared_pid_ QRM_GUARDED_BY(mutex_) = 0;
  std::string others_before_start_ QRM_GUARDED_BY(mutex_);
  std::string cgroup_ QRM_GUARDED_BY(mutex_);
  Node node_{
      QrmdBesideContainerd("compute", {.builtin_plugins = "cpu", .reconcile_period = "10m"})};
  std::unique_ptr<ScriptedDriver> driver_;
  Kubelet kubelet_{KubeletBesideContainerd()};
};

TEST_F(ComputeContainerTest, AGrantHoldsFromTheFirstInstructionAndOthersLeftBefore) {
  const auto shared = RunShared();
  ASSERT_TRUE(IsOk(shared.status()));
  {
    const MutexLock lock(mutex_);
    shared_pid_ = PidOf(*shared);
    ASSERT_EQ(AllowedCpus(shared_pid_), "0-1");
  }

  const auto web = RunOnDriver("web");

  ASSERT_TRUE(IsOk(web.status()));
  const std::vector<std::string> log = LogOf(*web);
  EXPECT_THAT(log, Contains("env GIVEN=by the driver"));
  EXPECT_THAT(log, Contains(StartsWith("cpus 1 mems 0 ")));
  const MutexLock lock(mutex_);
  EXPECT_EQ(others_before_start_, "0") << "while the driver was notified of the start";
  EXPECT_EQ(AllowedCpus(shared_pid_), "0");
  EXPECT_TRUE(std::filesystem::exists("/sys/fs/cgroup/cpuset" + cgroup_) ||
              std::filesystem::exists("/sys/fs/cgroup" + cgroup_))
      << cgroup_;
}

TEST_F(ComputeContainerTest, AContainerRunsInThePoolBesideTheExclusiveCpu) {
  const auto web = RunOnDriver("web", "scripted", "shares");
  ASSERT_TRUE(IsOk(web.status()));
  EXPECT_THAT(LogOf(*web), Contains(StartsWith("cpus 0-1 mems 0 ")));
  const auto shared = RunShared();
  ASSERT_TRUE(IsOk(shared.status()));
  EXPECT_EQ(AllowedCpus(PidOf(*shared)), "0") << "the other CPU is exclusive";
  EXPECT_THAT(node_.Qrmctl({"pods"}).value_or(""), testing::HasSubstr("1* +0"));
}

/// The number that `log` says after `what`; 0 when it does not.
int64_t TimeIn(const std::vector<std::string>& log, const std::string& what) {
  for (const std::string& line : log) {
    if (line.starts_with(what)) {
      return std::stoll(line.substr(what.size()));
    }
  }
  return 0;
}

TEST_F(ComputeContainerTest, ASharedContainerSawItsCpusShrinkBeforeTheNewOnesFirstInstruction) {
  const auto shared = RunShared();
  ASSERT_TRUE(IsOk(shared.status()));
  (void)LogOf(*shared);
  ASSERT_EQ(::kill(PidOf(*shared), SIGUSR2), 0);
  const auto log_of_shared = [&] {
    return kubelet_.ReadLog(*shared).value_or(std::vector<std::string>());
  };
  ASSERT_TRUE(Await([&] {
    const auto log = log_of_shared();
    return std::find(log.begin(), log.end(), "watches") != log.end();
  }));

  const auto web = RunOnDriver("after-all-left");

  ASSERT_TRUE(IsOk(web.status()));
  const int64_t began = TimeIn(LogOf(*web), "began at ");
  ASSERT_TRUE(Await([&] { return TimeIn(log_of_shared(), "unchanged at ") != 0; }));
  const int64_t unchanged = TimeIn(log_of_shared(), "unchanged at ");
  EXPECT_LT(unchanged, began) << "it still had the new one's CPU " << unchanged - began
                              << " ns after that one ran";
}

TEST_F(ComputeContainerTest, OthersReturnWhenThePodIsGone) {
  const auto shared = RunShared();
  ASSERT_TRUE(IsOk(shared.status()));
  const auto web = RunOnDriver("web");
  ASSERT_TRUE(IsOk(web.status()));
  const pid_t pid = PidOf(*shared);
  ASSERT_EQ(AllowedCpus(pid), "0");
  ASSERT_TRUE(IsOk(kubelet_.RemovePod(*web)));
  EXPECT_TRUE(Await([&] { return AllowedCpus(pid) == "0-1"; })) << AllowedCpus(pid);
  EXPECT_THAT(driver_->calls(), Contains(StartsWith("remove main ")));
}

// A new instance runs before the old one is removed, as after a restart of kubelet.
TEST_F(ComputeContainerTest, TwentyRestartsInPlaceKeepTheCpusAndAnOldInstancesEndChangesNothing) {
  auto web = RunOnDriver("restarted");
  ASSERT_TRUE(IsOk(web.status()));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(IsOk(kubelet_.RestartContainer(*web)));
    ASSERT_EQ(AllowedCpus(PidOf(*web)), "1");
  }
  const auto shared = RunShared();
  ASSERT_TRUE(IsOk(shared.status()));
  EXPECT_EQ(AllowedCpus(PidOf(*shared)), "0");
  const std::vector<std::string> calls = driver_->calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "admit main"), 1);
  EXPECT_THAT(calls, Contains("add main " + web->container_id));
  EXPECT_THAT(calls, Not(Contains(StartsWith("remove"))));
}

TEST_F(ComputeContainerTest, ADriverInPythonPlacesAContainerBeforeItsFirstInstruction) {
  const std::unique_ptr<Process> python = StartPythonDriver();
  if (python == nullptr) {
    GTEST_SKIP() << "Python has no gRPC; install python3-grpcio and python3-protobuf";
  }
  const auto shared = RunShared();
  ASSERT_TRUE(IsOk(shared.status()));
  const auto web = RunOnDriver("of-python", "python");
  ASSERT_TRUE(IsOk(web.status()));
  const std::string others = AllowedCpus(PidOf(*shared));
  EXPECT_EQ(others, "1");
  const std::vector<std::string> log = LogOf(*web);
  EXPECT_THAT(log, Contains("env PYTHON_CPUS=0"));
  EXPECT_THAT(log, Contains(StartsWith("cpus 0 mems 0 ")));
  ASSERT_TRUE(IsOk(kubelet_.RemovePod(*web)));
  EXPECT_TRUE(Await([&] { return AllowedCpus(PidOf(*shared)) == "0-1"; }))
      << "the container was updated";
}

}  // namespace
}  // namespace qrm::test::compute_container_test
