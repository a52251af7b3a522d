// What qrmctl doctor finds in the files of a node.
#include "tools/qrmctl/node_checks.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/support/temp_dir.h"

namespace qrm::manager::cli::node_checks_test {
namespace {

using State = NodeCheck::State;
using testing::AllOf;
using testing::Field;
using testing::HasSubstr;

/// A node on which nothing is missing but a listening runtime.
class NodeChecksTest : public testing::Test {
 protected:
  NodeChecksTest() {
    Write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    Write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    Write("run/containerd/containerd.sock", "");
    Write("var/run/nri/nri.sock", "");
    Write("var/lib/kubelet/config.yaml", "cpuManagerPolicy: none\nfeatureGates: {PodsAPI: true}\n");
    Write("var/lib/kubelet/pods-api/pods-api.sock", "");
    Run("1", "systemd");
  }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(Path(file)).parent_path());
    std::ofstream(Path(file)) << text;
  }
  void Remove(const std::string& file) { std::filesystem::remove_all(Path(file)); }
  /// Adds a process.
  void Run(const std::string& pid, const std::string& program) {
    Write("proc/" + pid + "/cmdline", "/usr/bin/" + program + std::string(1, '\0') + "--flag");
  }
  void Configure(const std::string& config) { Write("etc/qrm/config.yaml", config); }
  std::string Path(const std::string& file) const { return dir_ / file; }

  NodeCheck Check(const std::string& name) const {
    const auto node = ReadNodePaths(dir_.path(), "/etc/qrm/config.yaml");
    EXPECT_TRUE(node.ok()) << node.status();
    for (const NodeCheck& check : CheckNode(*node)) {
      if (check.name == name) {
        return check;
      }
    }
    ADD_FAILURE() << "no check is named " << name;
    return {};
  }
  /// What is found and cured, in one text.
  std::string Text(const std::string& name, State state) const {
    const NodeCheck check = Check(name);
    EXPECT_EQ(ToString(check.state), ToString(state)) << check.found;
    EXPECT_EQ(check.cure.empty(), state == State::kOk) << check.cure;
    return check.found + " -> " + check.cure;
  }

  const test::TempDir dir_;
};

TEST_F(NodeChecksTest, AGoodNodeHasNoCures) {
  const auto node = ReadNodePaths(dir_.path(), "/etc/qrm/config.yaml");
  ASSERT_TRUE(node.ok()) << node.status();
  std::vector<std::string> names;
  for (const NodeCheck& check : CheckNode(*node)) {
    names.push_back(check.name);
    if (check.name != "runtime") {
      EXPECT_EQ(ToString(check.state), "ok") << check.name << ": " << check.found;
      EXPECT_EQ(check.cure, "") << check.name;
    }
  }
  EXPECT_THAT(names, testing::ElementsAre("kernel", "cgroups", "runtime", "NRI", "kubelet policies",
                                          "kubelet gates", "irqbalance", "resctrl", "class keys",
                                          "AppArmor", "other writers", "other qrmd"));
}

TEST_F(NodeChecksTest, AnOldKernelFails) {
  Write("proc/sys/kernel/osrelease", "4.19.0\n");
  EXPECT_THAT(Text("kernel", State::kFailing), HasSubstr("5.0 or newer"));
  Remove("proc/sys/kernel/osrelease");
  EXPECT_THAT(Text("kernel", State::kFailing), HasSubstr("--fsroot"));
}

TEST_F(NodeChecksTest, CgroupsNeedCpusets) {
  Write("sys/fs/cgroup/cgroup.controllers", "cpu io\n");
  EXPECT_THAT(Text("cgroups", State::kFailing), HasSubstr("cgroup_disable=cpuset"));
  Remove("sys/fs/cgroup/cgroup.controllers");
  EXPECT_THAT(Text("cgroups", State::kFailing), HasSubstr("set cgroup-root"));
  Write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
  EXPECT_THAT(Text("cgroups", State::kOk), HasSubstr("cgroup v1"));
}

TEST_F(NodeChecksTest, ARuntimeThatDoesNotListenNamesTheOtherRuntimesSocket) {
  Remove("run/containerd");
  EXPECT_THAT(Text("runtime", State::kFailing), HasSubstr("install containerd or CRI-O"));
  Write("run/crio/crio.sock", "");
  EXPECT_THAT(Text("runtime", State::kFailing), HasSubstr("set cri-socket: /run/crio/crio.sock"));
}

TEST_F(NodeChecksTest, NriThatIsOffNamesTheSettingOfTheRuntime) {
  Remove("var/run/nri");
  EXPECT_THAT(Text("NRI", State::kDegraded), HasSubstr("add disable = false under"));
  Write("etc/containerd/config.toml", "[plugins.\"io.containerd.nri.v1.nri\"]\n disable = true\n");
  EXPECT_THAT(Text("NRI", State::kDegraded), HasSubstr("set disable = false under"));
  Configure("cri-socket: /run/crio/crio.sock\n");
  EXPECT_THAT(Text("NRI", State::kDegraded), HasSubstr("enable_nri = true"));
}

TEST_F(NodeChecksTest, KubeletsOwnPinningFails) {
  Write("var/lib/kubelet/config.yaml", "memoryManagerPolicy: Static\n");
  EXPECT_THAT(Text("kubelet policies", State::kFailing), HasSubstr("memoryManagerPolicy: None"));
  Write("var/lib/kubelet/cpu_manager_state", R"({"policyName": "static"})");
  EXPECT_THAT(Text("kubelet policies", State::kFailing), HasSubstr("set cpuManagerPolicy: none"));
}

TEST_F(NodeChecksTest, KubeletsTopologyPolicyDegrades) {
  Write("var/lib/kubelet/config.yaml", "topologyManagerPolicy: single-numa-node\n");
  EXPECT_THAT(Text("kubelet policies", State::kDegraded), HasSubstr("best-effort"));
}

TEST_F(NodeChecksTest, EstimatedRequestsNameTheGateAndTheUrl) {
  Remove("var/lib/kubelet/pods-api");
  EXPECT_THAT(Text("kubelet gates", State::kDegraded), HasSubstr("update kubelet to 1.36"));
  Write("var/lib/kubelet/config.yaml", "cpuManagerPolicy: none\n");
  EXPECT_THAT(Text("kubelet gates", State::kDegraded),
              AllOf(HasSubstr("featureGates: {PodsAPI: true}"), HasSubstr("kubelet-url")));
  Remove("var/lib/kubelet");
  EXPECT_THAT(Text("kubelet gates", State::kOk), HasSubstr("no kubelet"));
  EXPECT_THAT(Text("kubelet policies", State::kOk), HasSubstr("no kubelet"));
  Configure("kubelet-url: https://127.0.0.1:10250/pods\n");
  EXPECT_THAT(Text("kubelet gates", State::kOk), HasSubstr("kubelet-url reports"));
  Configure("kubelet-pods-socket: \"\"\n");
  EXPECT_THAT(Text("kubelet gates", State::kOk), HasSubstr("as configured"));
}

TEST_F(NodeChecksTest, IrqbalanceIsGoodOnlyWithItsSocket) {
  Run("77", "irqbalance");
  EXPECT_THAT(Text("irqbalance", State::kDegraded), HasSubstr("systemctl disable --now"));
  Write("run/irqbalance/irqbalance77.sock", "");
  EXPECT_THAT(Text("irqbalance", State::kOk), HasSubstr("running"));
}

TEST_F(NodeChecksTest, ResctrlIsNeededForClassesOfCachesOnly) {
  Configure("class-types: {rdt: {}}\n");
  EXPECT_THAT(Text("resctrl", State::kDegraded), HasSubstr("remove rdt"));
  Write("proc/filesystems", "nodev\tresctrl\n");
  EXPECT_THAT(Text("resctrl", State::kDegraded), HasSubstr("mount -t resctrl"));
  Write("sys/fs/resctrl/schemata", "L3:0=fff\n");
  EXPECT_THAT(Text("resctrl", State::kOk), HasSubstr("mounted"));
}

TEST_F(NodeChecksTest, KeysThatTheRuntimeRejectsNameItsSettings) {
  Configure("class-types: {rdt: {}, blockio: {}}\n");
  Write("etc/containerd/config.toml", "  ignore_rdt_not_enabled_errors = false\n");
  EXPECT_THAT(Text("class keys", State::kDegraded),
              AllOf(HasSubstr("containerd rejects pods with rdt.resources.beta.kubernetes.io and "
                              "blockio.resources.beta.kubernetes.io"),
                    HasSubstr("set ignore_rdt_not_enabled_errors and "
                              "ignore_blockio_not_enabled_errors = true")));
  Write("etc/containerd/config.toml",
        "  ignore_rdt_not_enabled_errors = true\n  ignore_blockio_not_enabled_errors=true\n");
  EXPECT_THAT(Text("class keys", State::kOk), HasSubstr("rejects none"));
  Configure("cri-socket: /run/crio/crio.sock\nclass-types: {rdt: {}, blockio: {}}\n");
  EXPECT_THAT(Text("class keys", State::kDegraded),
              AllOf(HasSubstr("CRI-O rejects pods with rdt.resources.beta.kubernetes.io"),
                    HasSubstr("by the keys with alpha")));
}

TEST_F(NodeChecksTest, AppArmorThatConfinesQrmdIsNamed) {
  Write("sys/module/apparmor/parameters/enabled", "Y\n");
  Run("88", "qrmd");
  Write("proc/88/attr/current", "cri-containerd.apparmor.d (enforce)\n");
  EXPECT_THAT(Text("AppArmor", State::kOk), HasSubstr("cri-containerd.apparmor.d"));
  Configure("class-types: {rdt: {}}\n");
  EXPECT_THAT(Text("AppArmor", State::kDegraded), HasSubstr("type: Unconfined"));
}

TEST_F(NodeChecksTest, TheProfileOfTheChartIsGoodForRdt) {
  Write("sys/module/apparmor/parameters/enabled", "Y\n");
  Run("88", "qrmd");
  Write("proc/88/attr/current", "qrm (enforce)\n");
  Configure("class-types: {rdt: {}}\n");
  EXPECT_THAT(Text("AppArmor", State::kOk), HasSubstr("confines qrmd: qrm (enforce)"));
}

TEST_F(NodeChecksTest, AnotherWriterOfCpusetsFails) {
  Write("opt/nri/plugins/10-logger", "");
  EXPECT_THAT(Text("other writers", State::kDegraded), HasSubstr("10-logger"));
  Run("99", "nri-resource-policy-balloons");
  EXPECT_THAT(Text("other writers", State::kFailing),
              AllOf(HasSubstr("nri-resource-policy-balloons"), HasSubstr("pid 99")));
}

TEST_F(NodeChecksTest, ASecondQrmdFails) {
  Run("88", "qrmd");
  EXPECT_THAT(Text("other qrmd", State::kOk), HasSubstr("pid 88"));
  Run("89", "qrmd");
  EXPECT_THAT(Text("other qrmd", State::kFailing), HasSubstr("pids 88, 89"));
}

TEST_F(NodeChecksTest, AConfigurationThatIsNotYamlIsAnError) {
  Configure("{odd\n");
  EXPECT_FALSE(ReadNodePaths(dir_.path(), "/etc/qrm/config.yaml").ok());
}

TEST(RuntimeVersionTest, OlderRuntimesHaveNoNri) {
  EXPECT_EQ(CheckRuntimeVersion("containerd", "v1.7.24").state, State::kOk);
  EXPECT_EQ(CheckRuntimeVersion("containerd", "2.0.3").state, State::kOk);
  EXPECT_THAT(CheckRuntimeVersion("containerd", "1.6.20~ds1"),
              Field(&NodeCheck::cure, HasSubstr("1.7.16")));
  EXPECT_THAT(CheckRuntimeVersion("cri-o", "1.25.1"), Field(&NodeCheck::cure, HasSubstr("1.26")));
  EXPECT_EQ(CheckRuntimeVersion("something", "0.1").state, State::kOk);
}

}  // namespace
}  // namespace qrm::manager::cli::node_checks_test
