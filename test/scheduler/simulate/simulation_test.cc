#include "scheduler/simulate/simulation.h"

#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/examples/fake_resource.h"
#include "scheduler/simulate/trace.h"

namespace qrm::scheduler::simulation_test {
namespace {

using testing::HasSubstr;

// Two NUMA nodes of four CPUs, of which only the first is reserved.
constexpr char kNodes[] = R"(
nodes:
- node:
    metadata:
      name: n1
      annotations:
        qrm.io/node-config: |
          machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1"
          topology-policy: single-numa-node
          plugins: {cpu: {reserved-cpus: "0", static: true}}
    status: {allocatable: {cpu: 7, memory: 16Gi}}
)";

std::string PodOf(const std::string& name, double at, int cpus, const std::string& more = "") {
  return fmt::format(R"(
- at: {}
  lifetime: 100
  pod:
    metadata: {{name: {}}}
    spec:
      {}
      containers:
      - {{name: c, resources: {{limits: {{cpu: {}, memory: 1Gi}}}}}}
)",
                     at, name, more, cpus);
}

SimulationReport Play(const std::string& text, const SimulationOptions& options = {}) {
  const StatusOr<Trace> trace = ReadTrace(text, "trace");
  EXPECT_TRUE(trace.ok()) << trace.status();
  const StatusOr<SimulationReport> report = Simulate(trace.value_or(Trace()), options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(SimulationReport());
}

TEST(SimulationTest, APodThatFitsNoNumaNodeWaitsUntilRoomAppears) {
  const SimulationReport report =
      Play(kNodes + ("pods:" + PodOf("a", 0, 2) + PodOf("b", 10, 3) + PodOf("c", 20, 2)));
  EXPECT_EQ(report.placed, 3);
  EXPECT_EQ(report.false_accepts, 0);
  EXPECT_EQ(report.longest_wait, 80);
}

TEST(SimulationTest, WithoutTheFilterTheNodeRejectsIt) {
  const SimulationReport report =
      Play(kNodes + ("pods:" + PodOf("a", 0, 2) + PodOf("b", 10, 3) + PodOf("c", 20, 2)),
           {.without = {"numa"}});
  EXPECT_EQ(report.false_accepts, 1);
  EXPECT_EQ(report.placed, 2);
}

TEST(SimulationTest, CountsWhatOthersBoundAndTheNodeRejected) {
  const SimulationReport report = Play(kNodes + ("pods:" + PodOf("a", 0, 5, "nodeName: n1")));
  EXPECT_EQ(report.bound_by_others, 1);
  EXPECT_EQ(report.refused_others, 1);
  EXPECT_EQ(report.false_accepts, 0);
}

TEST(SimulationTest, MeasuresUseAndFragmentationOverTime) {
  const SimulationReport report = Play(kNodes + ("pods:" + PodOf("a", 0, 4)));
  EXPECT_EQ(report.duration, 100);
  EXPECT_NEAR(report.utilisation.at("cpu").mean, 4.0 / 7, 1e-9);
  EXPECT_NEAR(report.utilisation.at("memory").mean, 1.0 / 16, 1e-9);
  EXPECT_EQ(report.fragmentation.mean, 0) << "three free CPUs, all on one NUMA node";
}

TEST(SimulationTest, ReportsWhyPodsWaitAtTheEnd) {
  const SimulationReport report = Play(kNodes + ("pods:" + PodOf("a", 0, 5) + PodOf("b", 0, 9)));
  EXPECT_EQ(report.waiting, 2);
  EXPECT_EQ(report.reasons,
            (std::map<std::string, int>{
                {"no NUMA placement fits under topology-policy single-numa-node", 1},
                {"the node has too little cpu left where it is needed", 1}}));
}

TEST(SimulationTest, WholeNodesAreCountedToo) {
  const SimulationReport report = Play(R"(
nodes: [{node: {metadata: {name: n1}, status: {allocatable: {cpu: 2}}}}]
pods:
- replicas: 3
  pod: {metadata: {name: a}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
)");
  EXPECT_EQ(report.placed, 2);
  EXPECT_EQ(report.reasons, (std::map<std::string, int>{{"the node as a whole is full", 1}}));
}

TEST(SimulationTest, PlaysAnAuthorsResource) {
  const auto trace = ReadTrace(R"(
nodes: [{node: {metadata: {name: n1}, status: {allocatable: {cpu: 9}}}}]
objects:
  nodefakeresourcestatuses.v1.fake.qrm.io: [{metadata: {name: x}, spec: {nodeName: n1, fakeResource: 10}}]
pods:
- replicas: 3
  pod:
    metadata: {name: a, annotations: {fake.qrm.io/request: "4"}}
    spec: {containers: [{name: c}]}
)",
                               "trace");
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto report = Simulate(*trace, {.factories = {{kFakeResource, MakeFakeHandle}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->placed, 2);
  EXPECT_EQ(report->reasons, (std::map<std::string, int>{{"not enough fake", 1}}));
}

TEST(SimulationTest, RejectsAPodOnANodeThatDoesNotExist) {
  const auto trace = ReadTrace("pods:" + PodOf("a", 0, 1, "nodeName: n9"), "trace");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(MessageOf(Simulate(*trace, {}).status()), HasSubstr("the trace has no such node"));
}

TEST(ReadTraceTest, NamesReplicasByNumber) {
  const auto trace = ReadTrace("nodes: [{replicas: 2, node: {metadata: {name: n}}}]", "trace");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->nodes, testing::ElementsAre(testing::Field(&Node::name, "n-0"),
                                                 testing::Field(&Node::name, "n-1")));
}

TEST(ReadTraceTest, SaysWhereItIsWrong) {
  const auto error = [](const std::string& text) {
    return MessageOf(ReadTrace(text, "t.yaml").status());
  };
  EXPECT_THAT(error("nodes: [{nod: 1}]"), HasSubstr("cannot read t.yaml: nodes[0]: it has no key"));
  EXPECT_THAT(error("pods: [{at: -1, pod: {metadata: {name: a}}}]"),
              HasSubstr("pods[0]: at is -1; write a number from 0"));
  EXPECT_THAT(error("pods: [{pod: {metadata: {}}}]"), HasSubstr("pod.metadata.name is missing"));
  EXPECT_THAT(error("pods: 7"), HasSubstr("pods is 7; write a list"));
  EXPECT_THAT(error("objects: {things: [1]}"), HasSubstr("objects.things: metadata.name"));
  EXPECT_THAT(error("a: [\n"), HasSubstr("t.yaml:2"));
  EXPECT_THAT(error("7"), HasSubstr("write a mapping"));
  EXPECT_THAT(error("nodes: [{node: {metadata: {name: n}}}, {node: {metadata: {name: n}}}]"),
              HasSubstr("node n is there twice"));
}

}  // namespace
}  // namespace qrm::scheduler::simulation_test
