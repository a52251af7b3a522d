#include "manager/daemon/node_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "topology/discovery.h"

namespace qrm::manager::node_config_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class NodeConfigTest : public testing::Test {
 protected:
  void Configure(const std::string& plugin, const std::string& keys) {
    builtin_.sections.emplace(plugin, *config::Section::Parse(keys, "config.yaml"));
  }
  std::string Text(const StringMap& plugin_values = {}, const CpuSet& offline = {}) const {
    const auto config = NodeConfig::Make({machine_, builtin_, admission_, pod_keys_});
    EXPECT_TRUE(config.ok()) << config.status();
    return config->Text(plugin_values, offline);
  }

  const Machine machine_ = *Discover(
      {.kind = MachineSource::Kind::kSynthetic, .argument = "package:1 [numa] core:4 pu:1"});
  BuiltinOptions builtin_{.plugins = {"cpu", "memory"}};
  placement::AdmissionOptions admission_;
  placement::PodKeys pod_keys_;
};

TEST_F(NodeConfigTest, DescribesTheMachineAndLeavesOutWhatIsUsual) {
  builtin_.plugins = BuiltinNames();
  EXPECT_THAT(Text(), StartsWith("{machine: \"described:cpus=0-3 cores=0-3 "));
  EXPECT_THAT(Text(), Not(HasSubstr("topology-policy")));
  EXPECT_THAT(Text(), Not(HasSubstr("builtin-plugins")));
  EXPECT_THAT(Text(), Not(HasSubstr("pod-role-label")));
}

TEST_F(NodeConfigTest, ReportsTheSettingsThatDecideAboutAllocations) {
  admission_.merge.policy = TopologyPolicy::kRestricted;
  admission_.scope = TopologyScope::kPod;
  admission_.skipped_namespaces = {"kube-system", "a: b"};
  pod_keys_.role_annotation = "";
  Configure("cpu", "reserved-cpus: \"0,2\"");
  EXPECT_THAT(Text(),
              EndsWith("topology-policy: restricted, topology-scope: pod, "
                       "skip-namespaces: [kube-system, \"a: b\"], pod-role-annotation: \"\", "
                       "builtin-plugins: [\"cpu\",\"memory\"], "
                       "plugins: {cpu: {reserved-cpus: \"0,2\"}}}"));
}

TEST_F(NodeConfigTest, SaysWhereTheDevicesAreThatPoolsName) {
  MachineParts parts = machine_.parts();
  parts.nics = {{.name = "eth0", .pci_address = "", .node = 0}};
  const Machine with_nic(std::move(parts));
  const std::string keys = "pools: {p: {size: {min: 1}, place: {near: eth0}}}";
  Configure("cpu", keys);
  const auto config = NodeConfig::Make({with_nic, builtin_, admission_, pod_keys_});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->Text({}, {}),
              HasSubstr("plugins: {cpu: {devices: {\"eth0\": \"0\"}, " + keys + "}"));
}

TEST_F(NodeConfigTest, SaysWhichCpusAreOffline) {
  EXPECT_THAT(Text({}, CpuSet{2, 3}), EndsWith(", offline-cpus: \"2-3\"}"));
}

TEST_F(NodeConfigTest, SaysHowPoolsWereResized) {
  Configure("cpu", "pools: {a: {cpus: \"0\"}, b: {cpus: \"1\"}}");
  EXPECT_THAT(Text({{"cpu", R"({"pools": {"a": {"cpus": "2-3", "configured": "0"}}})"}}),
              EndsWith(", pool-cpus: {\"a\":\"2-3\"}}"));
}

TEST_F(NodeConfigTest, SaysNothingOfPoolsThatFollowTheirContainers) {
  Configure("cpu", "pools: {a: {size: {max: 2}}}");
  EXPECT_THAT(Text({{"cpu", R"({"pools": {"a": {"cpus": "2-3", "configured": "elastic"}}})"}}),
              Not(HasSubstr("pool-cpus")));
}

TEST_F(NodeConfigTest, ReportsNicsWithoutTheirAddresses) {
  builtin_.plugins = {"nic"};
  Configure("nic", "nics: [{interface: \"e\\\"0\", numa-node: 0, ipv4: 192.0.2.7}]");
  EXPECT_THAT(Text(), HasSubstr(R"("interface":"e\"0","numa-node":0)"));
  EXPECT_THAT(Text(), Not(HasSubstr("192.0.2.7")));
}

}  // namespace
}  // namespace qrm::manager::node_config_test
