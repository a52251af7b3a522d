// With `static`, Guaranteed containers get the CPUs that kubelet's static policy would give them.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/cpu/cpu_plugin.h"
#include "test/plugins/example_machine.h"

namespace qrm::cpu {
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
  std::string taken;  ///< what another container has
  double request;
  std::string want;  ///< CPUs, or what the refusal says
};

class StaticRuleTest : public testing::TestWithParam<StaticCase> {};

/// Source: Kubernetes 1.36, TestStaticPolicyAdd; the names tell the cases.
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
    {"WholeCoresUpToTheLast", 6, 2, "{static: {whole-cores: true}, reserved-cpus: \"0,6\"}", "", 10,
     "1-5,7-11"},
    {"WholeCoresOnly", 6, 2, "{static: {whole-cores: true}, reserved-cpus: \"0,6\"}", "", 9,
     "cannot place"},
    {"ReservedCpusOfTwo", 4, 1, "{static: true, reserved-cpus: 0-1}", "2-3,6-7", 2, "4-5"},
    {"FractionSharesTheRest", 4, 1, kOneReserved, "", 0.977, "0-7"},
};
INSTANTIATE_TEST_SUITE_P(Kubelet, StaticRuleTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::cpu
