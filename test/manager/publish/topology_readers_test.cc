// What others make of the published topology: resource-topology-exporter, which computes the same
// from pod-resources, and the scheduler plugin NodeResourceTopologyMatch.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/podresources/v1/api.pb.h"
#include "manager/podresources/pod_resources_answers.h"
#include "manager/publish/node_topology.h"
#include "manager/publish/pods_fingerprint.h"
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

/// resource-topology-exporter, by what pod-resources tells of `state`.
/// Source: its rules in short: available is what is allocatable less CPU ids and memory blocks of
/// containers; pods that have either are in the fingerprint.
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
      bool has_own = false;
      for (const auto& container : pod.containers()) {
        has_own |= container.cpu_ids_size() > 0;
        for (const int64_t id : container.cpu_ids()) {
          --cpus[ZoneOf(machine, id)];
        }
        for (const auto& block : container.memory()) {
          has_own |= block.topology().nodes_size() > 0;
          memory[static_cast<int>(block.topology().nodes(0).id())] -=
              static_cast<int64_t>(block.size());
        }
      }
      if (has_own) {
        pods.push_back({.pod_namespace = pod.namespace_(), .name = pod.name()});
      }
    }
  }

  static int ZoneOf(const Machine& machine, int64_t cpu) {
    return machine.FindCpu(static_cast<int>(cpu))->node;
  }

  AmountByZone cpus;
  AmountByZone memory;
  std::vector<PodName> pods;
};

/// Pods with CPUs of their own, with bound memory, with both and with neither.
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
    EXPECT_EQ(AttributeOf(topology, "nodeTopologyPodsFingerprint"), PodsFingerprint(exporter.pods))
        << seed;
  }
}

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
