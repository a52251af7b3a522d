// Compute drivers through a real qrmd, on a simulated runtime: drivers that answer correctly, are
// not running or die.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "test/e2e/driver_node.h"
#include "test/e2e/process.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"

namespace qrm::test::compute_driver_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ComputeDriverTest : public testing::Test, protected DriverNode {};

TEST_F(ComputeDriverTest, AContainerGetsWhatItsDriverGivesAndOthersKeepOff) {
  cci::v1alpha1::AddResourceRequest added;
  on_add = [&](const auto& request) { added = request; };
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  EXPECT_EQ(Cpus("web"), "2-3");
  EXPECT_EQ(added.pod() + " " + added.pod_uid() + " " + added.pod_namespace() + " " +
                added.container() + " " + added.cpuset(),
            "web uid-web default container0 2-3");
  EXPECT_EQ(runtime.RunOptions("web")["envs"]["GIVEN"], "2-3");
  EXPECT_TRUE(
      Await([&] { return runtime.Updated("plain", "container0").cpuset_cpus() == "1,4-7"; }));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("later", 1, ""))));
  EXPECT_EQ(Cpus("later"), "1,4-7");
  EXPECT_THAT(driver->calls(), Contains(StartsWith("add container0 ")));
}

TEST_F(ComputeDriverTest, ADriverIsOfferedFreeCpusAndNotifiedOfThePod) {
  AdmitRequest asked;
  StartDriver([&](const AdmitRequest& request, AdmitResponse& response) {
    asked = request;
    return GiveLast(request, response);
  });
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("first", 2))));
  PodSpec pod = DriverPod("second", 1);
  pod.annotations["cci.qrm.io/spec"] = "* exclusive";
  ASSERT_TRUE(IsOk(runtime.RunPod(pod)));
  EXPECT_EQ(asked.availablecpus(), "1") << "of the hinted node";
  EXPECT_EQ(asked.reserved_cpus(), "0");
  EXPECT_EQ(asked.cci_spec(), "* exclusive");
  EXPECT_EQ(asked.pod() + " " + asked.pod_uid() + " " + asked.pod_namespace(),
            "second uid-second default");
  EXPECT_EQ(asked.requested_milli_cpus(), 1000);
  EXPECT_EQ(asked.requests().at("cpu"), 1);
  EXPECT_EQ(asked.limits().at("cpu"), 1);
  EXPECT_EQ(asked.qos_class(), "Guaranteed");
  EXPECT_EQ(asked.hint().nodes_size(), 1);
}

TEST_F(ComputeDriverTest, CpusReturnToAllWhenThePodIsGone) {
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
  EXPECT_TRUE(Await([&] {
    const auto calls = driver->calls();
    return std::any_of(calls.begin(), calls.end(),
                       [](const std::string& call) { return call.starts_with("remove"); });
  }));
  EXPECT_TRUE(Await([&] { return State().find("uid-web") == std::string::npos; }));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(Cpus("plain"), "1-7");
}

TEST_F(ComputeDriverTest, CpusStayWithheldUntilTheDriverTakesTheRemoval) {
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  takes_removals = false;
  ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
  ASSERT_TRUE(IsOk(node().Reconcile()));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(Cpus("plain"), "1,4-7");
  takes_removals = true;
  EXPECT_TRUE(Await([&] { return State().find("uid-web") == std::string::npos; }));
}

TEST_F(ComputeDriverTest,
       OnlyPodsOfADriverAreRejectedWhileItIsNotRunningAndTheyStartWhenItReturns) {
  EXPECT_THAT(Refusal(DriverPod("web", 1)),
              HasSubstr("compute driver scripted is not registered (annotation "
                        "cci.qrm.io/driver=scripted asks for it); start it"));
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("kept", 1))));
  StopDriver();
  EXPECT_THAT(Refusal(DriverPod("web", 1)), HasSubstr("is not running (annotation"));
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(Cpus("plain"), "1-2,4-7") << "what it gave stays given";
  StartDriver(GiveLast);
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 1))));
}

TEST_F(ComputeDriverTest, MetricsTellOfDriversThatFailOrDoNotRun) {
  StartDriver([&](const AdmitRequest& request, AdmitResponse& response) {
    if (request.pod() == "failing") {
      return Status(StatusCode::kInternal, "its table is broken");
    }
    Give(response, "0");  // a CPU that was not offered
    return OkStatus();
  });
  EXPECT_THAT(node().Metrics(), HasSubstr("qrm_plugin_live{resource=\"cci.qrm.io/scripted\"} 1"));
  Refusal(DriverPod("failing", 1));
  EXPECT_THAT(node().Metrics(),
              ContainsRegex("qrm_plugin_call_errors_total\\{[^}]*cci.qrm.io/scripted\"\\} [1-9]"));
  Refusal(DriverPod("wrong", 1));
  EXPECT_THAT(node().Metrics(),
              HasSubstr("qrm_plugin_suspect{resource=\"cci.qrm.io/scripted\"} 1"));
  StopDriver();
  EXPECT_THAT(node().Metrics(), HasSubstr("qrm_plugin_live{resource=\"cci.qrm.io/scripted\"} 0"));
}

TEST_F(ComputeDriverTest, APodFallsBackOnlyWhereTheOperatorSaysSo) {
  PodSpec pod = DriverPod("web", 1, "");
  pod.pod_namespace = "soft";
  ASSERT_TRUE(IsOk(runtime.RunPod(pod)));
  EXPECT_EQ(Cpus("web"), "1-7");
  EXPECT_THAT(*node().Qrmctl({"explain", "soft/web"}),
              AllOf(HasSubstr("fallback"), HasSubstr("spare is not registered")));
}

TEST_F(ComputeDriverTest, AFallbackStaysUntilThePodIsRecreated) {
  PodSpec pod = DriverPod("web", 1, "");
  pod.pod_namespace = "soft";
  ASSERT_TRUE(IsOk(runtime.RunPod(pod)));
  DriverScript script;
  script.name = "spare";
  script.admit = GiveLast;
  const ScriptedDriver spare(dir() / "node/plugins/spare.sock", std::move(script));
  ASSERT_TRUE(Await([&] { return IsLive("cci.qrm.io/spare"); })) << Plugins();
  ASSERT_TRUE(IsOk(node().Reconcile()));
  EXPECT_EQ(Cpus("web"), "1-7");
  EXPECT_THAT(spare.calls(), Not(Contains(StartsWith("admit"))));
  ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
  pod.uid = "uid-again";
  ASSERT_TRUE(IsOk(runtime.RunPod(pod)));
  EXPECT_EQ(Cpus("web"), "3");
}

TEST_F(ComputeDriverTest, ANamespaceMayNotAskForADriverUnlessItIsAllowed) {
  StartDriver(GiveLast);
  PodSpec pod = DriverPod("web", 1);
  pod.pod_namespace = "other";
  EXPECT_THAT(Refusal(pod), HasSubstr("does not allow compute driver scripted in namespace other"));
}

/// The whole default pool.
Status ShareAll(const AdmitRequest& /*request*/, AdmitResponse& response) {
  response.mutable_rset()->add_parts();
  return OkStatus();
}

TEST_F(ComputeDriverTest, AContainerThatSharesThePoolAloneFollowsIt) {
  StartDriver([&](const AdmitRequest& request, AdmitResponse& response) {
    return request.pod() == "web" ? ShareAll(request, response) : GiveLast(request, response);
  });
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  EXPECT_EQ(Cpus("web"), "1-7");
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("owner", 2))));
  EXPECT_TRUE(Await([&] { return runtime.Updated("web", "container0").cpuset_cpus() == "1,4-7"; }));
  node().KillDaemon();
  ASSERT_TRUE(IsOk(node().Start(3)));
  ASSERT_TRUE(IsOk(runtime.RemovePod("owner")));
  EXPECT_TRUE(Await([&] { return runtime.Updated("web", "container0").cpuset_cpus() == "1-7"; }));
}

// A node whose memory plugin binds memory, and where hints are advice.
class DriverMemoryTest : public testing::Test, protected DriverNode {
 protected:
  DriverMemoryTest()
      : DriverNode(
            "machine: \"synthetic:package:2 [numa(memory=1GiB)] core:4 pu:1\"\n"
            "topology-policy: best-effort\n"
            "plugins: {cpu: {reserved-cpus: \"0\"}, memory: {static: true}}\n"
            "compute-drivers: {scripted: {namespaces: [default]}}\n") {
    StartDriver([&](const AdmitRequest& request, AdmitResponse& response) {
      asked_ = request;
      response.set_mems(mems_);
      return GiveLast(request, response);
    });
  }
  void TearDown() override { driver.reset(); }  // it uses the members below
  PodSpec Asking(const std::string& name, int64_t mebibytes) {
    PodSpec pod = DriverPod(name, 1);
    pod.container.memory_bytes = mebibytes << 20;
    return pod;
  }
  std::string Mems(const std::string& pod) {
    return runtime.RunOptions(pod)["linux_container_resources"].value("cpusetMems", "");
  }

  std::string mems_;
  AdmitRequest asked_;
};

TEST_F(DriverMemoryTest, TheMemoryPluginTakesMemoryWhereTheDriverWantsIt) {
  mems_ = "1";
  ASSERT_TRUE(IsOk(runtime.RunPod(Asking("far", 512))));
  EXPECT_EQ(Mems("far"), "1");
  mems_ = "0";
  ASSERT_TRUE(IsOk(runtime.RunPod(Asking("near", 512))));
  EXPECT_EQ(Mems("near"), "0");
  mems_ = "1";
  EXPECT_THAT(Refusal(Asking("large", 800)), HasSubstr("memory"));
}

TEST_F(DriverMemoryTest, ADriverSeesTheFreeMemoryOfEachNode) {
  mems_ = "1";
  ASSERT_TRUE(IsOk(runtime.RunPod(Asking("first", 256))));
  ASSERT_TRUE(IsOk(runtime.RunPod(Asking("second", 256))));
  ASSERT_EQ(asked_.memory_nodes_size(), 2);
  const auto& node = asked_.memory_nodes(1);
  EXPECT_EQ(node.node(), 1U);
  EXPECT_EQ(node.kind(), "dram");
  EXPECT_EQ(node.bytes(), 1U << 30);
  EXPECT_EQ(node.free_bytes(), 768U << 20);
}

TEST_F(ComputeDriverTest, ARestartInPlaceKeepsTheCpusTwentyTimes) {
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(IsOk(runtime.EndContainer("web", "container0")));
    ASSERT_TRUE(IsOk(runtime.AddContainer("web", DriverPod("web", 2).container)));
    ASSERT_EQ(Cpus("web"), "2-3");
  }
  const std::vector<std::string> calls = driver->calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "admit container0"), 1);
  EXPECT_THAT(calls, Not(Contains(StartsWith("remove"))));
}

// A driver that changes the CPUs of running containers: it gives the last ones, and at most `most`.
class ResizingDriverTest : public ComputeDriverTest {
 protected:
  void SetUp() override {
    resizes = true;
    on_add = [&](const auto& request) {
      const MutexLock lock(mutex_);
      added_ = request.cpuset();
    };
    StartDriver([&](const AdmitRequest& request, AdmitResponse& response) {
      AdmitRequest asked = request;
      asked.set_requested_milli_cpus(std::min(asked.requested_milli_cpus(), int64_t{1000} * most_));
      return GiveLast(asked, response);
    });
    ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
    ASSERT_EQ(Cpus("web"), "2-3");
  }
  void TearDown() override { driver.reset(); }  // it uses the members below
  /// Whether the container runs on `cpus`, and its driver was sent them.
  bool Gets(const std::string& cpus) {
    return Await([&] {
      const MutexLock lock(mutex_);
      return runtime.Updated("web", "container0").cpuset_cpus() == cpus && added_ == cpus;
    });
  }
  void ForgetAdded() {
    const MutexLock lock(mutex_);
    added_.clear();
  }

  std::atomic<int> most_ = 8;

 private:
  Mutex mutex_;
  std::string added_;  // the CPUs of the latest call
};

TEST_F(ResizingDriverTest, AResizedContainerGrowsAndShrinksAsItsDriverSays) {
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  ASSERT_TRUE(IsOk(runtime.Resize("web", DriverPod("web", 3).container)));
  EXPECT_TRUE(Gets("1-3"));
  EXPECT_TRUE(Await([&] { return runtime.Updated("plain", "container0").cpuset_cpus() == "4-7"; }));
  ASSERT_TRUE(IsOk(runtime.Resize("web", DriverPod("web", 1).container)));
  EXPECT_TRUE(Gets("3"));
  EXPECT_TRUE(
      Await([&] { return runtime.Updated("plain", "container0").cpuset_cpus() == "1-2,4-7"; }));
}

TEST_F(ResizingDriverTest, AResizeThatTheDriverCannotServeIsPendingAndTriedAgain) {
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("owner", 2))));
  ASSERT_TRUE(IsOk(runtime.Resize("web", DriverPod("web", 4).container)));
  EXPECT_TRUE(Await([&] {
    return node().Qrmctl({"status"}).value_or("").find("with less than they request") !=
           std::string::npos;
  }));
  EXPECT_TRUE(IsOk(runtime.Resize("web", DriverPod("web", 3).container)));
  EXPECT_TRUE(Gets("1-3"));
}

TEST_F(ResizingDriverTest, ADriverTakesCpusBackAndReturnsThemByItself) {
  most_ = 1;
  ASSERT_TRUE(IsOk(node().NotifyChanged(kScriptedDriver)));
  EXPECT_TRUE(Gets("3"));
  most_ = 8;
  ASSERT_TRUE(IsOk(node().NotifyChanged(kScriptedDriver))) << "within the second, too";
  EXPECT_TRUE(Gets("2-3"));
}

TEST_F(ResizingDriverTest, AKilledDaemonTellsTheDriverWhatTheContainerHas) {
  ASSERT_TRUE(IsOk(runtime.Resize("web", DriverPod("web", 3).container)));
  ASSERT_TRUE(Gets("1-3"));
  ForgetAdded();
  node().KillDaemon();
  ASSERT_TRUE(IsOk(node().Start(3)));
  EXPECT_TRUE(Gets("1-3"));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("next", 2))));
  EXPECT_EQ(Cpus("next"), "6-7");
}

TEST_F(ComputeDriverTest, AKilledDaemonGivesEachCpuToOneAndNoneIsLost) {
  StartDriver(GiveLast);
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2))));
  node().KillDaemon();
  ASSERT_TRUE(IsOk(node().Start(3)));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("next", 2))));
  EXPECT_EQ(Cpus("next"), "6-7");
  ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
  ASSERT_TRUE(IsOk(runtime.RemovePod("next")));
  EXPECT_TRUE(Await([&] { return State().find("uid-") == std::string::npos; }));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(Cpus("plain"), "1-7");
}

TEST_F(ComputeDriverTest, ADriverOnTheSdkKeepsItsGrantsThroughKills) {
  const auto start = [&] {
    auto process = Process::Start(
        {bin() + "/qrm-example-round-robin-driver", "--plugins-registry-dir",
         dir() / "node/plugins", "--state-dir", dir() / "state", "--control-socket", ""},
        dir() / "driver.log");
    EXPECT_TRUE(IsOk(process.status()));
    EXPECT_TRUE(Await([&] { return IsLive("cci.qrm.io/round-robin"); })) << Plugins();
    return *std::move(process);
  };
  auto process = start();
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("web", 2, "round-robin"))));
  EXPECT_EQ(Cpus("web"), "1-2");
  EXPECT_EQ(runtime.RunOptions("web")["envs"]["ROUND_ROBIN_CPUS"], "1-2");
  process->Kill();
  ASSERT_TRUE(Await([&] { return !IsLive("cci.qrm.io/round-robin"); }));
  ASSERT_TRUE(IsOk(runtime.RemovePod("web")));
  process = start();
  EXPECT_TRUE(Await([&] { return State().find("uid-web") == std::string::npos; }));
  EXPECT_TRUE(IsOk(runtime.RunPod(DriverPod("next", 2, "round-robin"))));
}

// The node's machine has no thread siblings; the driver's own description of it has.
TEST_F(ComputeDriverTest, ADriverOfAttributesGivesWhatTheSpecSaysAndReportsWhatItCannot) {
  std::ofstream(dir() / "cci.yaml") << "policies: {quiet: {cores: '*2', attributes: numa=1}}\n";
  auto process =
      Process::Start({bin() + "/qrm-cci-driver", "--plugins-registry-dir", dir() / "node/plugins",
                      "--state-dir", dir() / "state", "--control-socket", "", "--config",
                      dir() / "cci.yaml", "--machine", "synthetic:package:2 [numa] core:2 pu:2"},
                     dir() / "driver.log");
  ASSERT_TRUE(IsOk(process.status()));
  ASSERT_TRUE(Await([&] { return IsLive("cci.qrm.io/attributes"); })) << Plugins();
  const auto run = [&](const std::string& name, int64_t cpus, const std::string& spec) {
    PodSpec pod = DriverPod(name, cpus, "attributes");
    pod.annotations["cci.qrm.io/spec"] = spec;
    return runtime.RunPod(pod);
  };

  ASSERT_TRUE(
      IsOk(run("cores", 2, "{cores: '*2', attributes: 'smt-sibling-required, no-quota?'}")));
  EXPECT_EQ(Cpus("cores"), "2-3");
  EXPECT_EQ(runtime.RunOptions("cores")["envs"]["CCI_PARTS"], "2-3 smt-sibling-required");
  EXPECT_THAT(*node().Qrmctl({"explain", "default/cores"}),
              AllOf(HasSubstr("no-quota?"), HasSubstr("not supported by this driver")));
  ASSERT_TRUE(IsOk(run("policy", 2, "quiet")));
  EXPECT_EQ(Cpus("policy"), "4-5");
  EXPECT_THAT(MessageOf(run("loud", 1, "loud")),
              HasSubstr("'loud' is not a policy of this node (quiet); name one, or write"));
  EXPECT_THAT(MessageOf(run("half", 1, "{cores: 'cpu:1', attributes: smt-sibling-required}")),
              HasSubstr("cores, line 1: smt-sibling-required also needs CPUs 0"));
}

// A tree in place of the machine's /proc and /sys.
class MachineTest : public ComputeDriverTest {
 protected:
  MachineTest() {
    Write("proc/sys/kernel/random/boot_id", "today");
    Write("sys/devices/system/cpu/online", "0-7");
    Write(kDefault, "ff");
    Write(kLatency, "0");
    Write(kIrq, "0-7");
  }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string Read(const std::string& path) const {
    std::ifstream stream(root_ + "/" + path);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  std::string Values() const { return Read(kLatency) + " " + Read(kIrq) + " " + Read(kDefault); }
  std::vector<std::string> Program() const {
    return {bin() + "/qrm-cci-driver",
            "--state-dir",
            dir() / "state",
            "--host-root",
            root_,
            "--machine",
            "synthetic:package:2 [numa] core:4 pu:1"};
  }
  std::unique_ptr<Process> StartProgram() {
    std::vector<std::string> program = Program();
    program.insert(program.end(),
                   {"--plugins-registry-dir", dir() / "node/plugins", "--control-socket", ""});
    auto process = Process::Start(program, dir() / "driver.log");
    EXPECT_TRUE(IsOk(process.status()));
    EXPECT_TRUE(Await([&] { return IsLive("cci.qrm.io/attributes"); })) << Plugins();
    return *std::move(process);
  }
  void RunQuietPod() {
    PodSpec pod = DriverPod("quiet", 1, "attributes");
    pod.annotations["cci.qrm.io/spec"] =
        "{cores: 'cpu:2', attributes: 'exclusive, no-irq, no-idle'}";
    ASSERT_TRUE(IsOk(runtime.RunPod(pod)));
    EXPECT_EQ(Values(), "n/a 0-1,3-7 fb");
  }
  void Kill(Process& process) {
    process.Kill();
    ASSERT_TRUE(Await([&] { return !IsLive("cci.qrm.io/attributes"); }));
  }

  static constexpr char kDefault[] = "proc/irq/default_smp_affinity";
  static constexpr char kLatency[] = "sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us";
  static constexpr char kIrq[] = "proc/irq/7/smp_affinity_list";
  static constexpr char kBefore[] = "0 0-7 ff";
  const std::string root_ = dir() / "machine";
};

TEST_F(MachineTest, AKilledDriverRestoresTheMachineWhenItsContainerWentMeanwhile) {
  auto process = StartProgram();
  RunQuietPod();
  Kill(*process);
  ASSERT_TRUE(IsOk(runtime.RemovePod("quiet")));
  EXPECT_THAT(Values(), StartsWith("n/a ")) << "no process restores it";
  process = StartProgram();
  EXPECT_TRUE(Await([&] { return Values() == kBefore; })) << Values();
}

TEST_F(MachineTest, ADriverIsRolledBackByUndoAndForget) {
  auto process = StartProgram();
  RunQuietPod();
  Kill(*process);
  std::vector<std::string> undo = Program();
  undo.emplace_back("--undo");
  ASSERT_TRUE(IsOk(RunCommand(undo).status()));
  EXPECT_EQ(Values(), kBefore);
  ASSERT_TRUE(IsOk(runtime.RemovePod("quiet")));
  ASSERT_TRUE(IsOk(node().Reconcile()));
  EXPECT_THAT(State(), HasSubstr("uid-quiet")) << "the driver has not taken the removal";
  ASSERT_TRUE(
      IsOk(node().Qrmctl({"plugins", "forget", "cci.qrm.io/attributes", "--yes"}).status()));
  EXPECT_TRUE(Await([&] { return State().find("uid-quiet") == std::string::npos; }));
  ASSERT_TRUE(IsOk(runtime.RunPod(DriverPod("plain", 1, ""))));
  EXPECT_EQ(Cpus("plain"), "1-7");
}

}  // namespace
}  // namespace qrm::test::compute_driver_test
