// Pods whose labels and annotations attack the node: they are refused, and it goes on placing
// others.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLevel[] = "katalyst.kubewharf.io/qos_level";
constexpr char kCpu[] = "katalyst.kubewharf.io/cpu_enhancement";
constexpr char kMemory[] = "katalyst.kubewharf.io/memory_enhancement";
constexpr char kSkip[] = "katalyst.kubewharf.io/skip_qrm_admit";
constexpr char kExclusive[] = R"({"numa_binding": "true", "numa_exclusive": "true"})";
/// As much as Kubernetes takes in annotations.
constexpr std::size_t kMuch = 250'000;

// Two NUMA nodes of four CPUs and 8 GiB, of which CPU 0 is reserved. Pods in `trusted` may do
// anything.
constexpr char kConfig[] = R"(
machine: "synthetic:package:2 [numa] core:4 pu:1"
numa-memory: {0: 8Gi, 1: 8Gi}
permissions:
  - {namespaces: [trusted], allow: [everything]}
plugins:
  cpu: {reserved-cpus: "0", exclusive-node-percent: 50}
)";

class HostilePodsTest : public testing::Test {
 protected:
  HostilePodsTest() { std::ofstream(dir_ / "qrmd.yaml") << kConfig; }

  void SetUp() override {
    ASSERT_TRUE(IsOk(node_.Start(2)));
    ASSERT_TRUE(IsOk(RunHonest()));
  }
  void TearDown() override { EXPECT_TRUE(node_.DaemonRuns()) << "it died of a pod"; }

  static PodSpec Pod(const std::string& name, StringMap annotations,
                     const ContainerSpec& container = {}) {
    return {.name = name,
            .uid = "uid-" + name,
            .annotations = std::move(annotations),
            .container = container};
  }
  std::string Refusal(const PodSpec& pod) {
    const Status run = runtime_.RunPod(pod);
    EXPECT_FALSE(run.ok()) << pod.name << " was admitted";
    return MessageOf(run);
  }
  std::string CpusOf(const std::string& pod) const {
    return runtime_.RunOptions(pod)["linux_container_resources"].value("cpusetCpus", "");
  }
  /// A pod of somebody else comes, is placed and goes.
  Status RunHonest() {
    const PodSpec pod = Pod("honest" + std::to_string(honest_++), {}, {.milli_cpus = 500});
    QRM_RETURN_IF_ERROR(runtime_.RunPod(pod));
    EXPECT_NE(CpusOf(pod.name), "");
    return runtime_.RemovePod(pod.name);
  }

  const TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  Node node_{{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
              .work_dir = dir_ / "node",
              .config = dir_ / "qrmd.yaml",
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu,memory"}};
  int honest_ = 0;
};

TEST_F(HostilePodsTest, AnAnnotationThatIsNestedDeeplyIsRefused) {
  const std::string open(kMuch / 2, '[');
  const std::string nested = "{\"a\":" + open + std::string(kMuch / 2, ']') + "}";
  EXPECT_THAT(Refusal(Pod("nested", {{kCpu, nested}})),
              HasSubstr("[[... (250006 bytes)' is nested more than 4 deep"));
  const std::string shorter = "{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_THAT(Refusal(Pod("shorter", {{kMemory, shorter}})), HasSubstr("nested more than 4 deep"));
  EXPECT_TRUE(IsOk(RunHonest()));
}

TEST_F(HostilePodsTest, PodsThatRequestNothingLockNoNumaNode) {
  for (const char* name : {"first", "second"}) {
    EXPECT_TRUE(
        IsOk(runtime_.RunPod(Pod(name, {{kLevel, "dedicated_cores"}, {kMemory, kExclusive}}))));
  }
  for (const char* name : {"third", "fourth"}) {
    EXPECT_THAT(Refusal(Pod(name, {{kLevel, "dedicated_cores"}, {kMemory, kExclusive}},
                            {.milli_cpus = 1000, .memory_bytes = 1})),
                HasSubstr("exclusive-node-percent"));
  }
  EXPECT_TRUE(IsOk(runtime_.RunPod(
      Pod("database", {{kLevel, "dedicated_cores"}, {kMemory, kExclusive}},
          {.milli_cpus = 2000, .memory_bytes = int64_t{5} << 30, .cpu_limit = true}))));
  EXPECT_TRUE(IsOk(RunHonest()));
}

TEST_F(HostilePodsTest, OnlyNamespacesThatMayTakeReservedCpusOrOptOut) {
  EXPECT_THAT(Refusal(Pod("system", {{kLevel, "system_cores"}}, {.milli_cpus = 100})),
              HasSubstr("the default rule of permissions does not allow reserved-cpus to namespace "
                        "default, which annotation katalyst.kubewharf.io/qos_level=system_cores "
                        "asks for"));
  EXPECT_THAT(Refusal(Pod("skip", {{kSkip, "true"}})),
              HasSubstr("does not allow opt-out to namespace default"));
  PodSpec trusted = Pod("trusted", {{kLevel, "system_cores"}}, {.milli_cpus = 100});
  trusted.pod_namespace = "trusted";
  EXPECT_TRUE(IsOk(runtime_.RunPod(trusted)));
  EXPECT_EQ(CpusOf("trusted"), "0");
  EXPECT_THAT(node_.Qrmctl({"permissions", "--namespace", "trusted"}).value_or(""),
              HasSubstr("opt-out,reserved-cpus,own-cpus,numa-nodes,network-namespaces"));
  EXPECT_THAT(node_.Qrmctl({"permissions", "--namespace", "default"}).value_or(""),
              Not(HasSubstr("opt-out")));
}

TEST_F(HostilePodsTest, WhoOptedOutStaysOffTheCpusOfOthersAndTheReservedOnes) {
  PodSpec left_alone = Pod("agent", {{kSkip, "true"}}, {.milli_cpus = 100});
  left_alone.pod_namespace = "trusted";
  ASSERT_TRUE(IsOk(runtime_.RunPod(left_alone)));
  EXPECT_EQ(CpusOf("agent"), "1-7");
  ASSERT_TRUE(IsOk(runtime_.RunPod(
      Pod("owner", {{kLevel, "dedicated_cores"}}, {.milli_cpus = 2000, .memory_bytes = 1 << 20}))));
  const std::string owned = CpusOf("owner");
  ASSERT_TRUE(IsOk(node_.Reconcile()));
  PodSpec later = Pod("kube-proxy", {}, {.milli_cpus = 100});
  later.pod_namespace = "kube-system";
  ASSERT_TRUE(IsOk(runtime_.RunPod(later)));
  for (const char* pod : {"agent", "kube-proxy"}) {
    const CpuSet cpus = CpuSet::Parse(CpusOf(pod)).value_or(CpuSet());
    EXPECT_FALSE(cpus.Intersects(*CpuSet::Parse(owned))) << pod << " has " << CpusOf(pod);
    EXPECT_FALSE(cpus.Has(0)) << pod << " is on the reserved CPU";
    EXPECT_EQ(cpus.Count(), 5) << pod;
  }
}

}  // namespace
}  // namespace qrm::test
