// What qrmctl status, the probe, the metric and qrmctl plugins show of the node's parts.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::test::status_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusTest : public testing::Test {
 protected:
  void Start(const std::string& machine = "synthetic:package:2 [numa] core:4 pu:1",
             const std::string& builtin_plugins = "memory", const std::string& keys = "") {
    for (const char* file : {"qrmd.yaml", "cpu.yaml"}) {
      std::ofstream(dir_ / file) << "machine: \"" << machine << "\"\n" << keys;
    }
    std::filesystem::create_directory(kubelet_dir_);
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtin_plugins,
                      .metrics_address = "127.0.0.1:0",
                      .probe_address = "127.0.0.1:0",
                      .flags = {"--kubelet-pods-socket=" + kubelet_socket_,
                                "--kubelet-state-dir=" + kubelet_dir_}});
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }

  /// The line of `subsystem`; empty if there is none.
  v1::Subsystem Line(const std::string& subsystem) const {
    const auto status = node_->GetStatus();
    EXPECT_TRUE(IsOk(status.status()));
    const v1::GetStatusResponse known = status.value_or(v1::GetStatusResponse());
    for (const v1::Subsystem& line : known.subsystems()) {
      if (line.name() == subsystem) {
        return line;
      }
    }
    return {};
  }
  static std::string Get(int port, const std::string& path) {
    boost::asio::ip::tcp::iostream stream("127.0.0.1", std::to_string(port));
    stream << "GET " << path << " HTTP/1.0\r\n\r\n" << std::flush;
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  TempDir dir_;
  const std::string kubelet_dir_ = dir_ / "kubelet";
  const std::string kubelet_socket_ = dir_ / "pods-api.sock";
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(StatusTest, EstimatedRequestsAreReportedEverywhereUntilKubeletReportsPods) {
  Start();
  EXPECT_EQ(Line("kubelet").state(), "degraded");
  EXPECT_EQ(Line("kubelet").next(), "qrmctl doctor");
  EXPECT_THAT(*node_->Qrmctl({"status"}),
              AllOf(HasSubstr("yes, degraded"), HasSubstr("\n  requests of pods are estimated")));
  EXPECT_THAT(*node_->Qrmctl({"plugins"}), HasSubstr("note: requests of pods are estimated"));
  EXPECT_THAT(Get(node_->probe_port(), "/readyz"),
              AllOf(HasSubstr(" 200 "), HasSubstr("degraded: requests of pods are estimated")));
  EXPECT_THAT(node_->Metrics(), HasSubstr("\nqrm_requests_estimated 1\n"));

  const ScriptedKubelet kubelet(kubelet_socket_);
  EXPECT_TRUE(Await([this] { return Line("kubelet").state() == "ok"; }));
  EXPECT_EQ(Line("kubelet").about(), "requests from kubelet's Pods API");
  EXPECT_THAT(*node_->Qrmctl({"plugins"}), Not(HasSubstr("note: ")));
  EXPECT_THAT(node_->Metrics(), HasSubstr("\nqrm_requests_estimated 0\n"));
}

TEST_F(StatusTest, SubsystemsShowSinceWhenTheyAreDegraded) {
  const ScriptedKubelet kubelet(kubelet_socket_);
  Start();
  ASSERT_TRUE(IsOk(node_->StartPlugin("cpu", "cpu", dir_ / "cpu.yaml")));
  EXPECT_EQ(Line("plugins").about(), "2 live");
  EXPECT_EQ(Line("plugins").state(), "ok");
  ASSERT_TRUE(Await([this] { return Line("runtime").state() == "ok"; }));
  const double before = Line("runtime").seconds_in_state();
  node_->KillPlugin("cpu");
  ASSERT_TRUE(Await([this] { return Line("plugins").state() == "degraded"; }));
  const v1::Subsystem line = Line("plugins");
  EXPECT_EQ(line.about(), "1 live, 1 not running");
  EXPECT_EQ(line.next(), "qrmctl plugins");
  EXPECT_LT(line.seconds_in_state(), Line("runtime").seconds_in_state());
  EXPECT_GE(Line("runtime").seconds_in_state(), before);
}

// No container of the simulated runtime has a cgroup.
TEST_F(StatusTest, ValuesThatWereNotReadFromTheKernelAreMarked) {
  Start("live", "cpu");
  ASSERT_TRUE(
      IsOk(runtime_.RunPod({.name = "web", .uid = "uid-web", .container = {.milli_cpus = 100}})));
  EXPECT_THAT(*node_->Qrmctl({"pods"}), HasSubstr("unapplied"));
  EXPECT_THAT(*node_->Qrmctl({"pods", "web"}), HasSubstr("not read from the kernel: "));
}

TEST_F(StatusTest, BesideKubeletsStaticCpuManagerNicsFollowTheCpusOfKubelet) {
  std::filesystem::create_directory(kubelet_dir_);
  std::ofstream(kubelet_dir_ + "/cpu_manager_state") << R"({"policyName":"static"})";
  Start("synthetic:package:2 [numa] core:4 pu:1", "nic", R"(
plugins: {nic: {nics: [{interface: eth0, numa-node: 0, ipv4: 192.0.2.1},
                       {interface: eth1, numa-node: 1, ipv4: 192.0.2.2}]}}
implicit-resources: [{resource: NIC, roles: [web]}]
)");
  for (const auto& [name, cpus, nic] :
       {std::tuple("far", "6-7", "192.0.2.2"), std::tuple("near", "2-3", "192.0.2.1")}) {
    ASSERT_TRUE(IsOk(runtime_.RunPod({.name = name,
                                      .uid = name,
                                      .labels = {{"katalyst.kubewharf.io/pod_role", "web"}},
                                      .container = {.milli_cpus = 2000, .cpus = cpus}})));
    EXPECT_THAT(runtime_.RunOptions(name).dump(), HasSubstr(nic));
  }
  EXPECT_EQ(Line("kubelet").state(), "degraded") << "only since requests are estimated";
  EXPECT_THAT(*node_->Qrmctl({"status"}), HasSubstr("yes, degraded"));
}

TEST_F(StatusTest, SwitchedOffQrmdChangesNoContainerAndSaysSo) {
  Start("synthetic:package:2 [numa] core:4 pu:1", "cpu",
        "enabled: false\nplugins: {cpu: {static: true}}\n");
  ASSERT_TRUE(IsOk(runtime_.RunPod(
      {.name = "web",
       .uid = "uid-web",
       .container = {.milli_cpus = 2000, .memory_bytes = 64 << 20, .cpu_limit = true}})));
  EXPECT_TRUE(runtime_.RunOptions("web").empty()) << runtime_.RunOptions("web");
  EXPECT_EQ(Line("qrmd").state(), "degraded");
  EXPECT_THAT(*node_->Qrmctl({"status"}), HasSubstr("switched off: enabled is false"));
}

}  // namespace
}  // namespace qrm::test::status_test
