// With `static`, Guaranteed containers get the CPUs that kubelet's static policy would give them.
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/cpu/cpu_plugin.h"
#include "test/plugins/example_machine.h"
#include "test/plugins/plugin_driver.h"

namespace qrm::cpu::static_rule_test {
namespace {

/// Two threads per core, the second ones numbered after all the first ones; with two sockets, cores
/// alternate between them.
Machine HyperThreaded(int cores, int sockets) {
  MachineParts parts;
  for (int cpu = 0; cpu < 2 * cores; ++cpu) {
    const int socket = cpu % sockets;
    parts.cpus.push_back(
        {.id = cpu, .core = cpu % cores, .l3 = socket, .node = socket, .package = socket});
  }
  for (int socket = 0; socket < sockets; ++socket) {
    parts.nodes.push_back({.id = socket, .package = socket});
  }
  return Machine(std::move(parts));
}

struct StaticCase {
  std::string name;
  int cores;
  int sockets;
  std::string config;
  std::string taken;  ///< the CPUs of another container
  double request;
  std::string want;  ///< CPUs, or the text of the rejection
};

class StaticRuleTest : public testing::TestWithParam<StaticCase> {};

/// Source: Kubernetes 1.36, TestStaticPolicyAdd; each case has its name there.
TEST_P(StaticRuleTest, TakesWhatKubeletTakes) {
  const StaticCase& test = GetParam();
  const auto section = config::Section::Parse(test.config, "cpu.yaml");
  auto plugin = MakeCpuPlugin(*ParseCpuConfig(*section), HyperThreaded(test.cores, test.sockets));
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  ContainerRequest other = test::Request("other", "", "cpu", 1);
  other.native_qos_class = "Guaranteed";
  if (!test.taken.empty()) {
    ResourceAllocation allocation = sdk::PinCpus(*CpuSet::Parse(test.taken));
    allocation.exclusive = true;
    ASSERT_TRUE(
        (*plugin)->Restore({{other.key, {.request = other, .allocation = allocation}}}).ok());
  }
  ContainerRequest request = test::Request("pod", "", "cpu", test.request);
  request.native_qos_class = "Guaranteed";
  const auto allocation = (*plugin)->Allocate(request, {});
  EXPECT_THAT(allocation.ok() ? allocation->value : MessageOf(allocation.status()),
              testing::HasSubstr(test.want));
}

constexpr char kOneReserved[] = "{static: true, reserved-cpus: 0}";
const StaticCase kCases[] = {
    {"OneCore", 4, 1, kOneReserved, "2-3,6-7", 2, "1,5"},
    {"OneSocket", 6, 2, kOneReserved, "2", 6, "1,3,5,7,9,11"},
    {"ThreeCores", 6, 2, kOneReserved, "1,5", 6, "2-4,8-10"},
    {"OneSocketAndOneCore", 6, 2, kOneReserved, "2", 8, "1,3-5,7,9-11"},
    {"OneCpu", 4, 1, kOneReserved, "", 1, "4"},
    {"TooMany", 4, 1, kOneReserved, "", 8, "pod default/pod"},
    {"TooManyOnTwoSockets", 6, 2, kOneReserved, "1-3", 10, "pod default/pod"},
    {"WholeCoresUpToTheLast", 6, 2, "{static: {full-pcpus-only: true}, reserved-cpus: \"0,6\"}", "",
     10, "1-5,7-11"},
    {"WholeCoresOnly", 6, 2, "{static: {full-pcpus-only: true}, reserved-cpus: \"0,6\"}", "", 9,
     "cannot place"},
    {"ReservedCpusOfTwo", 4, 1, "{static: true, reserved-cpus: 0-1}", "2-3,6-7", 2, "4-5"},
    {"FractionSharesTheRest", 4, 1, kOneReserved, "", 0.977, "0-7"},
};
INSTANTIATE_TEST_SUITE_P(Kubelet, StaticRuleTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

ContainerRequest Guaranteed(const std::string& container, ContainerType type, double cpus) {
  ContainerRequest request = test::Request("pod", "", "cpu", cpus);
  request.key.container = container;
  request.type = type;
  request.native_qos_class = "Guaranteed";
  return request;
}

std::unique_ptr<sdk::ResourcePlugin> Make(const std::string& config) {
  return *MakeCpuPlugin(*ParseCpuConfig(*config::Section::Parse(config, "cpu.yaml")),
                        HyperThreaded(4, 1));
}

/// Source: Kubernetes 1.36, TestStaticPolicyReuseCPUs.
TEST(StaticModeTest, LaterContainersHaveTheCpusOfInitContainersToo) {
  test::Drive drive(Make("{static: true, reserved-cpus: 3}"));
  EXPECT_EQ(drive.Admit(Guaranteed("init", ContainerType::kInit, 4))->value, "0-1,4-5");
  EXPECT_EQ(drive.Admit(Guaranteed("app", ContainerType::kMain, 2))->value, "0,4");
  EXPECT_EQ(drive.Admit(Guaranteed("beside", ContainerType::kSidecar, 3))->value, "1,5,7");
  EXPECT_EQ(drive.plugin().Pools().back().cpus, (CpuSet{2, 3, 6}));
  drive.plugin().Remove({{"pod-uid", "init"}});
  EXPECT_EQ(drive.plugin().Pools().back().cpus, (CpuSet{2, 3, 6}));
}

TEST(StaticModeTest, SidecarsKeepTheirCpusToThemselves) {
  test::Drive drive(Make("{static: true, reserved-cpus: 3}"));
  EXPECT_EQ(drive.Admit(Guaranteed("beside", ContainerType::kSidecar, 2))->value, "0,4");
  EXPECT_EQ(drive.Admit(Guaranteed("app", ContainerType::kMain, 2))->value, "1,5");
}

TEST(StaticModeTest, RestartKeepsCpusThatContainersOwnInTurn) {
  test::Drive before(Make("{static: true, reserved-cpus: 3}"));
  ASSERT_TRUE(before.Admit(Guaranteed("init", ContainerType::kInit, 4)).ok());
  ASSERT_TRUE(before.Admit(Guaranteed("app", ContainerType::kMain, 2)).ok());
  test::Drive after(Make("{static: true, reserved-cpus: 3}"), before);
  after.Reconcile();
  EXPECT_EQ(after.grants().at({"pod-uid", "app"}).allocation->value, "0,4");
  EXPECT_EQ(after.grants().at({"pod-uid", "init"}).allocation->value, "0-1,4-5");
  EXPECT_EQ(after.Admit(Guaranteed("beside", ContainerType::kSidecar, 2))->value, "1,5");
}

TEST(StaticModeTest, ReservesAsManyCpusAsConfigured) {
  const auto plugin = Make("static: {reserved-cpu-count: 2}");
  EXPECT_EQ(plugin->Allocatable().allocatable_cpus, (CpuSet{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(plugin->Pools().back().cpus, CpuSet::Range(0, 7));
}

TEST(StaticModeTest, StrictReservationKeepsReservedCpusOutOfTheDefaultPool) {
  const auto plugin = Make("{reserved-cpus: 0-1, static: {strict-cpu-reservation: true}}");
  EXPECT_EQ(plugin->Pools().back().cpus, CpuSet::Range(2, 7));
}

TEST(StaticModeTest, NeverEmptiesTheDefaultPool) {
  test::Drive drive(Make("{reserved-cpus: 0-1, static: {strict-cpu-reservation: true}}"));
  EXPECT_THAT(MessageOf(drive.Admit(Guaranteed("app", ContainerType::kMain, 6)).status()),
              testing::HasSubstr("requests 6 exclusive CPUs, but the shared pool has only 6 CPUs "
                                 "left; request fewer CPUs or delete a pod"));
}

}  // namespace
}  // namespace qrm::cpu::static_rule_test
