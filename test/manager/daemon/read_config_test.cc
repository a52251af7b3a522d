#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/daemon/config_table.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::read_config_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class ReadConfigTest : public testing::Test {
 protected:
  StatusOr<Config> Read(const std::string& text, const StringMap& flags = {}) {
    std::ofstream(path_) << text;
    return ReadConfig(path_, flags);
  }
  std::string Error(const std::string& text, const StringMap& flags = {}) {
    return MessageOf(Read(text, flags).status());
  }

  const test::TempDir dir_;
  const std::string path_ = dir_ / "qrmd.yaml";
};

TEST_F(ReadConfigTest, ReadsEveryKindOfKey) {
  const auto config = Read(
      "state-dir: /s\n"
      "reconcile-period: 500ms\n"
      "builtin-plugins: [cpu]\n"
      "topology-policy: single-numa-node\n"
      "topology-scope: pod\n"
      "resource-names-map: {example.com/batch: cpu}\n"
      "implicit-resources: [{resource: NIC, roles: [a, b], annotation: x/y}]\n"
      "numa-memory: {0: 1Gi}\n"
      "memory-kinds: {0: hbm}\n"
      "plugins: {cpu: {reserved-cpus: \"0\"}}\n"
      "control-uids: [1000]\n"
      "nri-plugin-index: \"05\"\n"
      "realtime-priority: 2\n"
      "pod-role-label: example.com/role\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->process.state_dir, "/s");
  EXPECT_EQ(config->reconcile.period, std::chrono::milliseconds(500));
  EXPECT_THAT(config->builtin.plugins, ElementsAre("cpu"));
  EXPECT_EQ(config->admission.merge.policy, TopologyPolicy::kSingleNumaNode);
  EXPECT_EQ(config->admission.scope, TopologyScope::kPod);
  EXPECT_THAT(config->admission.resource_names,
              ElementsAre(Pair("example.com/batch", placement::MappedResource{"cpu"})));
  ASSERT_EQ(config->admission.implicit_resources.size(), 1u);
  EXPECT_THAT(config->admission.implicit_resources[0].roles, ElementsAre("a", "b"));
  EXPECT_THAT(config->machine.node_memory, ElementsAre(Pair(0, 1 << 30)));
  EXPECT_THAT(config->machine.memory_kinds, ElementsAre(Pair(0, MemoryKind::kHbm)));
  EXPECT_TRUE(config->builtin.sections.at("cpu").Has("reserved-cpus"));
  EXPECT_THAT(config->control.allowed_uids, ElementsAre(1000));
  EXPECT_EQ(config->runtime.nri.index, "05");
  EXPECT_EQ(config->process.realtime_priority, 2);
  EXPECT_EQ(config->pod_keys.role_label, "example.com/role");
}

TEST_F(ReadConfigTest, OffersTheClassThatAPoolOfIdleWeightNeeds) {
  const auto config = Read("plugins: {cpu: {pools: {batch: {cpus: 1-2, idle-weight: true}}}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->classes.enabled);
  EXPECT_TRUE(config->classes.types.contains("cpu-scheduling"));
  const auto without = Read("plugins: {cpu: {pools: {batch: {cpus: 1-2}}}}\n");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_FALSE(without->classes.enabled);
}

TEST_F(ReadConfigTest, HasItsDefaultsWithoutAFile) {
  const auto config = ReadConfig("", {});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->reconcile.period, std::chrono::seconds(3));
  EXPECT_THAT(config->builtin.plugins, ElementsAre("cpu", "memory", "nic"));
}

TEST_F(ReadConfigTest, ReadsKubeletsAddressAndThePodsToSkip) {
  const auto config = Read(
      "kubelet-pods-socket: \"\"\n"
      "kubelet-url: https://127.0.0.1:10250/pods\n"
      "kubelet-token-file: /t\n"
      "kubelet-ca-file: /c\n"
      "kubelet-pin-first-use: true\n"
      "kubelet-poll-interval: 2s\n"
      "pod-spec-wait: 0s\n"
      "native-resources: [cpu]\n"
      "skip-priority-classes: []\n"
      "skip-daemonset-pods: false\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kubelet.pods_socket, "");
  EXPECT_EQ(config->kubelet.url, "https://127.0.0.1:10250/pods");
  EXPECT_EQ(config->kubelet.token_file, "/t");
  EXPECT_EQ(config->kubelet.ca_file, "/c");
  EXPECT_TRUE(config->kubelet.pin_first_use);
  EXPECT_EQ(config->kubelet.poll_interval, std::chrono::seconds(2));
  EXPECT_EQ(config->kubelet.pod_spec_wait, std::chrono::seconds(0));
  EXPECT_THAT(config->admission.native_resources, ElementsAre("cpu"));
  EXPECT_THAT(config->admission.skipped_priority_classes, IsEmpty());
  EXPECT_FALSE(config->admission.skip_daemonset_pods);
  EXPECT_THAT(Error("kubelet-url: http://127.0.0.1:10255/pods\n"),
              HasSubstr("not an https address"));
}

TEST_F(ReadConfigTest, LetsFlagsWinOverTheFile) {
  const auto config = Read("reconcile-period: 5s\nbuiltin-plugins: [cpu, nic]\n",
                           {{"reconcile-period", "1s"}, {"builtin-plugins", "memory,nic"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->reconcile.period, std::chrono::seconds(1));
  EXPECT_THAT(config->builtin.plugins, ElementsAre("memory", "nic"));
}

TEST_F(ReadConfigTest, TakesAnEmptyListAndAnEmptyTextFromFlags) {
  const auto config = Read("", {{"builtin-plugins", ""}, {"metrics-address", ""}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->builtin.plugins, IsEmpty());
  EXPECT_EQ(config->http.metrics_address, "");
}

TEST_F(ReadConfigTest, TakesMappingsAndTextWithColonsFromFlags) {
  const auto config = Read("", {{"resource-names-map", "{a: cpu}"},
                                {"machine", "synthetic:package:2 [numa] core:4 pu:2"},
                                {"metrics-address", ":1234"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->admission.resource_names,
              ElementsAre(Pair("a", placement::MappedResource{"cpu"})));
  EXPECT_EQ(config->machine.source, "synthetic:package:2 [numa] core:4 pu:2");
  EXPECT_EQ(config->http.metrics_address, ":1234");
}

TEST_F(ReadConfigTest, CountsThousandthsOfCpusWhereANameSaysSoOrAScaleDoes) {
  const auto config = Read(
      "resource-names-map:\n"
      "  resource.katalyst.kubewharf.io/reclaimed_millicpu: cpu\n"
      "  resource.katalyst.kubewharf.io/reclaimed_memory: memory\n"
      "  kubernetes.io/batch-cpu: {resource: cpu, scale: 1m}\n"
      "  example.com/whole_millicpu: {resource: cpu, scale: 1}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(
      config->admission.resource_names,
      UnorderedElementsAre(Pair("resource.katalyst.kubewharf.io/reclaimed_millicpu",
                                placement::MappedResource{"cpu", 0.001}),
                           Pair("resource.katalyst.kubewharf.io/reclaimed_memory",
                                placement::MappedResource{"memory"}),
                           Pair("kubernetes.io/batch-cpu", placement::MappedResource{"cpu", 0.001}),
                           Pair("example.com/whole_millicpu", placement::MappedResource{"cpu"})));
}

TEST_F(ReadConfigTest, RejectsInvalidListenAddresses) {
  EXPECT_THAT(Error("metrics-address: 9753\n"),
              HasSubstr("metrics-address is '9753', which is not an address to listen at"));
  EXPECT_THAT(Error("probe-address: localhost:9754\n"), HasSubstr("127.0.0.1:9753"));
}

TEST_F(ReadConfigTest, RejectsMetricsAndProbesOnOnePort) {
  EXPECT_THAT(Error("metrics-address: :9754\n"), HasSubstr("both have the same port"));
}

TEST_F(ReadConfigTest, ReadsDurationsOfSeveralUnits) {
  const auto read = [this](const std::string& period) {
    return Read("reconcile-period: " + period + "\n")->reconcile.period;
  };
  EXPECT_EQ(read("10m0s"), std::chrono::minutes(10));
  EXPECT_EQ(read("1m30s500ms"), std::chrono::milliseconds(90'500));
  EXPECT_EQ(read("0h1m"), std::chrono::minutes(1));
}

TEST_F(ReadConfigTest, NamesFileLineAndTheNearestKeyOfAnUnknownOne) {
  const std::string error = Error("state-dir: /s\nreconcile-perod: 3s\n");
  EXPECT_THAT(error, HasSubstr(path_ + ":2"));
  EXPECT_THAT(error,
              HasSubstr("reconcile-perod is not a known key; did you mean reconcile-period"));
  EXPECT_THAT(Error("colour: red\n"), HasSubstr("is not a known key; qrmd --help lists all keys"));
}

struct BadValue {
  std::string name;
  std::string text;
  std::string message;
};

class ReadConfigBadValueTest : public ReadConfigTest,
                               public testing::WithParamInterface<BadValue> {};

TEST_P(ReadConfigBadValueTest, IsRejectedWithLocationValueAndForm) {
  const std::string error = Error("\n" + GetParam().text + "\n");
  EXPECT_THAT(error, HasSubstr(path_ + ":2"));
  EXPECT_THAT(error, HasSubstr(GetParam().message));
}

const BadValue kBadValues[] = {
    {"RelativePath", "state-dir: state", "'state', which is not an absolute path"},
    {"NoDuration", "reconcile-period: 3", "'3', which is not a duration from 100ms to 10m"},
    {"ShortDuration", "reconcile-period: 1ms", "not a duration from 100ms"},
    {"DurationWithoutANumber", "reconcile-period: 1mms", "not a duration"},
    {"NegativeDuration", "reconcile-period: -3s", "not a duration"},
    {"HugeDuration", "reconcile-period: 9999999999999999999s", "not a duration"},
    {"UnknownPlugin", "builtin-plugins: [gpu]", "has 'gpu', which is not built in"},
    {"NoResource", "required-plugins: [\"a b\"]", "has 'a b', which is not a resource name"},
    {"UnknownSection", "plugins: {gpu: {}}", "a section 'gpu'"},
    {"UnknownPolicy", "topology-policy: tight", "write none, best-effort"},
    {"UnknownScope", "topology-scope: node", "write container or pod"},
    {"BadIndex", "nri-plugin-index: 7", "not two digits"},
    {"BadResource", "resource-names-map: {cpu: \"a b\"}", "but 'a b' is not a resource name"},
    {"NoScale", "resource-names-map: {a: {resource: cpu, scale: 0}}",
     "is '0', which is not a quantity"},
    {"ImplicitForNobody", "implicit-resources: [{resource: NIC}]", "is given to no pod"},
    {"ImplicitUnknownKey", "implicit-resources: [{resource: NIC, role: a}]", "role"},
    {"PriorityOfNone", "realtime-priority: 100", "'100', which is not a number from 0 to 99"},
    {"BadUid", "control-uids: [root]", "has 'root', which is not a user id"},
    {"BadLevel", "log-level: loud", "write debug, info, warning or error"},
    {"NoList", "skip-namespaces: a", "is not a list"},
    {"NoClassType", "class-types: {lanes: {}}",
     "has 'lanes', which is not a class type; choose from"},
    {"NoPluginsClassType", "class-types: {example.com/lanes: {}}", "which is not a class type"},
    {"NoServiceAccount", "class-types: {oom: {classes: {x: {service-accounts: [runner]}}}}",
     "has 'runner'; write NAMESPACE/NAME"},
    {"NoNameOfAServiceAccount", "class-types: {oom: {classes: {x: {service-accounts: [a/]}}}}",
     "has 'a/'; write NAMESPACE/NAME"},
    {"NoLabel", "class-types: {oom: {classes: {x: {namespace-labels: [a=b=c]}}}}",
     "has 'a=b=c'; write KEY=VALUE"},
    {"FileOfAPluginsClasses", "class-types: {lanes.example.com: {config-file: /f}}",
     "remove it, and configure the plugin"},
};
INSTANTIATE_TEST_SUITE_P(Values, ReadConfigBadValueTest, testing::ValuesIn(kBadValues),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_F(ReadConfigTest, RejectsADuplicateKey) {
  EXPECT_THAT(Error("skip-namespaces: []\nskip-namespaces: []\n"),
              HasSubstr(":2: skip-namespaces occurs twice"));
}

TEST_F(ReadConfigTest, NamesAFlagThatCannotBeRead) {
  EXPECT_THAT(Error("", {{"reconcile-period", "soon"}}),
              HasSubstr("the command line:1: reconcile-period is 'soon'"));
  EXPECT_THAT(Error("", {{"plugins", "{"}}), HasSubstr("flag --plugins"));
}

TEST_F(ReadConfigTest, SaysThatAFileIsMissing) {
  EXPECT_EQ(ReadConfig(dir_ / "none.yaml", {}).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace qrm::manager::read_config_test
