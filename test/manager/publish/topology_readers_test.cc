// Readers of the published topology: resource-topology-exporter, which computes the same from
// pod-resources, and the scheduler plugin NodeResourceTopologyMatch.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/podresources/v1/api.pb.h"
#include "manager/podresources/pod_resources_answers.h"
#include "manager/publish/node_topology.h"
#include "scheduler/topology/match_rules.h"
#include "test/support/sample_node.h"

namespace qrm::manager::topology_readers_test {
namespace {

using nlohmann::json;
using scheduler::MatchNode;
using test::Admit;
using test::kGiB;

constexpr int kNodes = 4;
constexpr int kCpusOfNode = 4;
constexpr int kMilli = 1000;

using AmountByZone = std::map<int, int64_t>;

/// resource-topology-exporter, by pod-resources' answers about `state`. Source: its rules in short:
/// available is what is allocatable less CPU ids and memory blocks of containers.
struct Exporter {
  Exporter(const checkpoint::NodeState& state, const Machine& machine,
           const AllocatableByResource& offered) {
    const auto allocatable = AllocatableAnswer(offered, machine, {});
    const auto list = ListAnswer(state, machine, {});
    for (const int64_t id : allocatable.cpu_ids()) {
      ++cpus[ZoneOf(machine, id)];
    }
    for (const auto& block : allocatable.memory()) {
      memory[static_cast<int>(block.topology().nodes(0).id())] +=
          static_cast<int64_t>(block.size());
    }
    for (const auto& pod : list.pod_resources()) {
      for (const auto& container : pod.containers()) {
        for (const int64_t id : container.cpu_ids()) {
          --cpus[ZoneOf(machine, id)];
        }
        for (const auto& block : container.memory()) {
          memory[static_cast<int>(block.topology().nodes(0).id())] -=
              static_cast<int64_t>(block.size());
        }
      }
    }
  }

  static int ZoneOf(const Machine& machine, int64_t cpu) {
    return machine.FindCpu(static_cast<int>(cpu))->node;
  }

  AmountByZone cpus;
  AmountByZone memory;
};

/// Pods with exclusive CPUs, with bound memory, with both and with neither.
class RandomNode {
 public:
  explicit RandomNode(uint32_t seed) : random_(seed) {
    for (int cpu = 1; cpu < kNodes * kCpusOfNode; ++cpu) {
      free_.push_back(cpu);
    }
    std::shuffle(free_.begin(), free_.end(), random_);
    AllocatableResource& cpus = allocatable["cpu"];
    AllocatableResource& memory = allocatable["memory"];
    for (int node = 0; node < kNodes; ++node) {
      cpus.allocatable_by_node[node] = kCpusOfNode - (node == 0 ? 1 : 0);
      cpus.capacity_by_node[node] = kCpusOfNode;
      memory.allocatable_by_node[node] = (node == 0 ? 15.0 : 16.0) * kGiB;
      memory.capacity_by_node[node] = 16.0 * kGiB;
    }
    cpus.capacity = kNodes * kCpusOfNode;
    cpus.allocatable = cpus.capacity - 1;
    cpus.allocatable_cpus = *CpuSet::Parse("1-15");
    for (int pods = Pick(8); pods > 0; --pods) {
      AddPod("p" + std::to_string(pods));
    }
  }

  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  Machine machine = test::SampleMachine(kNodes, kCpusOfNode);
  AllocatableByResource allocatable;
  checkpoint::NodeState state;

 private:
  void AddPod(const std::string& name) {
    for (int count = 1 + Pick(2); count > 0; --count) {
      AllocationByResource allocations = {{"cpu", test::SharedCpus("0-15", 0.5)}};
      if (Pick(2) == 0 && !free_.empty()) {
        allocations["cpu"] = test::OwnCpus(std::to_string(free_.back()));
        free_.pop_back();
      }
      if (Pick(2) == 0) {
        allocations["memory"] = test::NodeMemory({{static_cast<uint64_t>(Pick(kNodes)), kGiB / 2}});
      }
      state = state.With(Admit(test::SamplePod(name), "c" + std::to_string(count),
                               std::move(allocations),
                               count == 2 ? ContainerType::kSidecar : ContainerType::kMain));
    }
  }

  std::mt19937 random_;
  std::vector<int> free_;  // CPUs
};

std::string AttributeOf(const json& topology, const std::string& name) {
  for (const json& attribute : topology["attributes"]) {
    if (attribute["name"] == name) {
      return attribute["value"];
    }
  }
  return "";
}

TEST(TopologyReadersTest, TheExporterWouldPublishTheSame) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const RandomNode node(seed);
    const json topology = NodeTopologyOf({.state = node.state,
                                          .machine = node.machine,
                                          .allocatable = node.allocatable,
                                          .policy = TopologyPolicy::kSingleNumaNode});
    const Exporter exporter(node.state, node.machine, node.allocatable);
    const MatchNode read = scheduler::ReadMatchNode(topology);
    ASSERT_EQ(read.zones.size(), kNodes);
    for (const auto& [zone, available] : read.zones) {
      EXPECT_EQ(available.at("cpu"), kMilli * exporter.cpus.at(zone)) << seed << " zone " << zone;
      EXPECT_EQ(available.at("memory"), exporter.memory.at(zone)) << seed << " zone " << zone;
    }
  }
}

using Amounts = std::map<std::string, double>;

/// A container by its pod's spec, and the source of its requests.
struct SpecContainer {
  ContainerType type = ContainerType::kMain;
  Amounts limits;
  Amounts requests;
  std::string source = "pods-api";
};

struct CountCase {
  std::string name;
  std::string qos_class;
  std::vector<SpecContainer> containers;
  bool counts = false;
};

class PodsCountTest : public testing::TestWithParam<CountCase> {};

// The zones list cpu, memory and veryfast.io/fpga. Every pod counts as its spec says, also in a
// pool or skipped.
TEST_P(PodsCountTest, AsForTheSchedulerPlugin) {
  const CountCase& pod = GetParam();
  checkpoint::NodeState state;
  int container = 0;
  for (const SpecContainer& spec : pod.containers) {
    checkpoint::PodMeta meta = test::SamplePod("pod", "kube-system");
    meta.qos_class = pod.qos_class;
    checkpoint::Change change = Admit(meta, "c" + std::to_string(container++),
                                      {{"cpu", test::SharedCpus("0-15", 1)}}, spec.type);
    change.put_containers[0].record.limits = spec.limits;
    change.put_containers[0].record.requests = spec.requests;
    change.put_containers[0].record.request_source = spec.source;
    state = state.With(std::move(change));
  }
  RandomNode node(0);
  node.allocatable["veryfast.io/fpga"] = {.allocatable_by_node = {{1, 4}},
                                          .capacity_by_node = {{1, 4}}};
  const json topology =
      NodeTopologyOf({.state = state, .machine = node.machine, .allocatable = node.allocatable});
  EXPECT_EQ(AttributeOf(topology, "nodeTopologyPodsFingerprint"),
            PodsFingerprint(pod.counts ? std::vector<PodName>{{"kube-system", "pod"}}
                                       : std::vector<PodName>{}));
}

constexpr auto kInit = ContainerType::kInit;
constexpr auto kSidecar = ContainerType::kSidecar;
const Amounts kCore = {{"cpu", 4}, {"memory", 2 << 20}};
const Amounts kFpga = {{"veryfast.io/fpga", 1}};
const Amounts kCoreAndFpga = {{"cpu", 4}, {"memory", 2 << 20}, {"veryfast.io/fpga", 1}};
const Amounts kCpusAndFpga = {{"cpu", 4}, {"veryfast.io/fpga", 1}};
const Amounts kNone = {{"cpu", 0}};

// Named as in scheduler-plugins' exclusive_test.go; the other rows are answers of its code.
const CountCase kCountCases[] = {
    {"NoContainers", "BestEffort", {}, false},
    {"SingleContainerGuNoDevs", "Guaranteed", {{.limits = kCore, .requests = kCore}}, true},
    {"SingleInitcontainerGuNoDevs", "Guaranteed", {{kInit, kCore, kCore}}, false},
    {"SingleSidecarInitcontainerGuNoDevs", "Guaranteed", {{kSidecar, kCore, kCore}}, true},
    {"SingleContainerDevsOnly", "BestEffort", {{.limits = kFpga, .requests = kFpga}}, true},
    {"SingleInitcontainerDevsOnly", "BestEffort", {{kInit, kFpga, kFpga}}, false},
    {"SingleSidecarInitcontainerDevsOnly", "BestEffort", {{kSidecar, kFpga, kFpga}}, true},
    {"SingleContainerGuCoreAndDevs",
     "Guaranteed",
     {{.limits = kCoreAndFpga, .requests = kCoreAndFpga}},
     true},
    {"SingleContainerNonguCpusAndDevs",
     "Burstable",
     {{.limits = kCpusAndFpga, .requests = kCpusAndFpga}},
     true},
    {"SingleContainerNonguCpusOnly",
     "Burstable",
     {{.limits = {{"cpu", 8}}, .requests = {{"cpu", 8}}}},
     false},
    {"DeviceNotInNrtIsNotExclusive",
     "BestEffort",
     {{.limits = {{"other.io/fpga", 1}}, .requests = {{"other.io/fpga", 1}}}},
     false},
    {"SkippedGuaranteed", "Guaranteed", {{.limits = kCore, .requests = kNone}}, true},
    {"GuaranteedFraction",
     "Guaranteed",
     {{.limits = {{"cpu", 0.5}, {"memory", 4096}}, .requests = {{"cpu", 0.5}}}},
     true},
    {"GuaranteedByPodLevelAlone", "Guaranteed", {{.requests = kNone}}, false},
    {"GuaranteedByPodLevelWithAFraction",
     "Guaranteed",
     {{.limits = {{"cpu", 0.5}}, .requests = {{"cpu", 0.5}}}},
     false},
    {"GuaranteedByEstimate",
     "Guaranteed",
     {{.limits = {{"cpu", 0.5}}, .requests = {{"cpu", 0.5}}, .source = "estimate"}},
     true},
    {"BurstableByEstimate",
     "Burstable",
     {{.limits = {{"cpu", 4}}, .requests = {{"cpu", 4}}, .source = "estimate"}},
     false},
    {"ImplicitDevice", "Burstable", {{.requests = {{"cpu", 1}, {"veryfast.io/fpga", 1}}}}, false},
};
INSTANTIATE_TEST_SUITE_P(Vectors, PodsCountTest, testing::ValuesIn(kCountCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(TopologyReadersTest, ThePluginPlacesWhereAZoneHasEnough) {
  int refused = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    RandomNode node(seed);
    const MatchNode read =
        scheduler::ReadMatchNode(NodeTopologyOf({.state = node.state,
                                                 .machine = node.machine,
                                                 .allocatable = node.allocatable,
                                                 .policy = TopologyPolicy::kSingleNumaNode}));
    const Exporter exporter(node.state, node.machine, node.allocatable);
    const int64_t cpus = 1 + node.Pick(kCpusOfNode);
    const int64_t memory = static_cast<int64_t>(kGiB) * (14 + node.Pick(3));
    const scheduler::Pod pod{
        .uid = "u",
        .qos_class = "Guaranteed",
        .containers = {{.name = "c",
                        .requests = {{"cpu", static_cast<double>(cpus)},
                                     {"memory", static_cast<double>(memory)}}}}};
    const bool fits =
        std::any_of(exporter.cpus.begin(), exporter.cpus.end(), [&](const auto& zone) {
          return zone.second >= cpus && exporter.memory.at(zone.first) >= memory;
        });
    EXPECT_EQ(scheduler::MatchRefusal(read, pod), fits ? "" : "cannot align container") << seed;
    refused += fits ? 0 : 1;
  }
  EXPECT_GT(refused, 30);
  EXPECT_LT(refused, 270);
}

}  // namespace
}  // namespace qrm::manager::topology_readers_test
