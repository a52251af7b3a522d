// CPU, hint and memory placement beyond kubelet's own rows.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/cpu_assignment.h"
#include "topology/hint_generation.h"
#include "topology/memory_assignment.h"
#include "topology/static_cpu_policy.h"

namespace qrm {
namespace {

/// `nodes` nodes of one package each with `cores` cores of `threads` threads; siblings are
/// adjacent.
Machine Regular(int nodes, int cores, int threads, uint64_t memory_bytes = 0) {
  MachineParts parts;
  int id = 0;
  for (int node = 0; node < nodes; ++node) {
    const int l3 = id;
    parts.nodes.push_back({.id = node, .package = node, .memory_bytes = memory_bytes});
    for (int core = 0; core < cores; ++core) {
      const int first = id;
      for (int thread = 0; thread < threads; ++thread) {
        parts.cpus.push_back({.id = id++, .core = first, .l3 = l3, .node = node, .package = node});
      }
    }
  }
  return Machine(std::move(parts));
}

/// CPUs 0-3: two performance cores of two threads; 4-7: four efficiency cores.
Machine Hybrid() {
  MachineParts parts;
  parts.nodes.push_back({.id = 0});
  for (int id = 0; id < 8; ++id) {
    parts.cpus.push_back({.id = id, .core = id < 4 ? id / 2 * 2 : id, .core_kind = id < 4 ? 1 : 0});
  }
  return Machine(std::move(parts));
}

std::string Taken(const StatusOr<CpuSet>& cpus) {
  return cpus.ok() ? ToString(*cpus) : MessageOf(cpus.status());
}

TEST(TakeCpusTest, KeepsToTheKindOfCoreAskedFor) {
  const Machine machine = Hybrid();
  EXPECT_EQ(
      Taken(TakeCpus(machine, machine.cpu_set(), 2, {.core_kind = CoreKindFilter::kPerformance})),
      "0-1");
  EXPECT_EQ(
      Taken(TakeCpus(machine, machine.cpu_set(), 2, {.core_kind = CoreKindFilter::kEfficiency})),
      "4-5");
  EXPECT_EQ(TakeCpus(machine, machine.cpu_set(), 5, {.core_kind = CoreKindFilter::kPerformance})
                .status()
                .code(),
            StatusCode::kResourceExhausted);
}

TEST(TakeCpusTest, TakesWholeCoresOfUnlikeSizes) {
  const Machine machine = Hybrid();
  EXPECT_EQ(Taken(TakeCpus(machine, {0, 2, 3, 4}, 3, {.full_physical_cpus_only = true})), "2-4");
  EXPECT_EQ(TakeCpus(machine, {0, 1, 2, 3}, 3, {.full_physical_cpus_only = true}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(TakeCpusTest, RefusesToSplitCoresWhenOnlyWholeOnesAreAsked) {
  const Machine machine = Regular(1, 4, 2);
  EXPECT_EQ(
      TakeCpus(machine, machine.cpu_set(), 3, {.full_physical_cpus_only = true}).status().code(),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(Taken(TakeCpus(machine, {0, 2, 3, 4, 5}, 4, {.full_physical_cpus_only = true})), "2-5");
  EXPECT_EQ(TakeCpus(machine, {0, 2, 4, 5}, 4, {.full_physical_cpus_only = true}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(TakeCpusTest, FillsTheHintBeforeOtherNodes) {
  const Machine machine = Regular(2, 2, 2);
  EXPECT_EQ(Taken(TakeCpusNear(machine, machine.cpu_set(), 6, {1})), "0-1,4-7");
}

TEST(TakeCpusTest, NamesOptionsThatContradictEachOther) {
  const Status status =
      ValidateCpuAssignmentOptions({.distribute_across_numa = true, .prefer_align_by_l3 = true});
  EXPECT_THAT(MessageOf(status), testing::HasSubstr("distribute-cpus-across-numa"));
  EXPECT_TRUE(ValidateCpuAssignmentOptions({.full_physical_cpus_only = true}).ok());
}

TEST(TakeDistributedTest, SplitsEvenlyOverManyNodes) {
  const Machine machine = Regular(64, 4, 2);
  const StatusOr<CpuSet> cpus =
      TakeCpus(machine, machine.cpu_set(), 256, {.distribute_across_numa = true});
  ASSERT_TRUE(cpus.ok()) << MessageOf(cpus.status());
  EXPECT_EQ(cpus->Count(), 256);
  EXPECT_EQ(machine.NodesOf(*cpus).Count(), 32);
}

TEST(StaticCpuPolicyTest, GivesBackWhatNoOtherContainerUses) {
  const Machine machine = Regular(1, 4, 2);
  const StaticCpuPolicy policy(CpuLayout(machine), {.reserved = {0}});
  StaticCpuState state = policy.Start({}).value();
  state = policy.Allocate(state, {.pod = "p", .container = "c", .count = 2}).value();
  EXPECT_EQ(ToString(state.assignments["p"]["c"]), "2-3");
  state = policy.Remove(state, "p", "c");
  EXPECT_EQ(state.shared, machine.cpu_set());
  EXPECT_TRUE(state.assignments.empty());
}

TEST(StaticCpuPolicyTest, KeepsStrictlyReservedCpusOutOfTheSharedPool) {
  const Machine machine = Regular(1, 4, 2);
  const StaticCpuPolicy policy(CpuLayout(machine),
                               {.strict = StrictReservation::kYes, .reserved = {0, 1}});
  EXPECT_EQ(ToString(policy.Start({})->shared), "2-7");
  EXPECT_EQ(policy.Start({.shared = machine.cpu_set()}).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(GenerateHintsTest, PrefersMasksAsNarrowAsTotalsAllow) {
  const Machine machine = Regular(3, 2, 1);
  const NodeAmounts amounts{.total = {{0, 4}, {1, 4}, {2, 4}}, .free = {{0, 1}, {1, 4}, {2, 2}}};
  const HintList hints = GenerateHints(machine, 4, amounts);
  ASSERT_FALSE(hints.hints().empty());
  EXPECT_EQ(hints.hints().front(), (TopologyHint{.nodes = {1}, .preferred = true}));
  EXPECT_EQ(hints.hints().size(), 4u);  // and each wider mask with node 1
  EXPECT_TRUE(GenerateHints(machine, 8, amounts).IsImpossible());
  EXPECT_TRUE(GenerateHints(machine, 0, amounts).IsNoPreference());
}

TEST(GenerateHintsTest, StaysSmallOnManyNodes) {
  const Machine machine = Regular(128, 1, 1);
  NodeAmounts amounts;
  for (int node = 0; node < 128; ++node) {
    amounts.total[node] = 1;
    amounts.free[node] = node % 2;
  }
  const HintList hints = GenerateHints(machine, 40, amounts);
  ASSERT_FALSE(hints.hints().empty());
  EXPECT_LE(hints.hints().size(), 4096u);
  EXPECT_EQ(hints.hints().front().nodes.Count(), 40);
  EXPECT_TRUE(hints.hints().front().preferred);
}

constexpr uint64_t kGi = uint64_t{1} << 30;

TEST(MemoryAssignmentTest, StaticPolicyKeepsGroupsApartAndPerNodeDoesNot) {
  const Machine machine = Regular(2, 1, 1, 4 * kGi);
  const std::map<int, MemoryBytes> reserved;
  const MemoryRequest narrow{
      .pod = "a", .container = "c", .bytes = {{"memory", kGi}}, .hint = {{0}, true}};
  const MemoryRequest wide{
      .pod = "b", .container = "c", .bytes = {{"memory", 5 * kGi}}, .hint = {{0, 1}, true}};

  const MemoryAssignment by_kubelet(machine, MemoryPolicy::kStatic, reserved);
  const MemoryState one = by_kubelet.Allocate(by_kubelet.Start({}).value(), narrow).value();
  EXPECT_EQ(by_kubelet.Allocate(one, wide).status().code(), StatusCode::kFailedPrecondition);

  const MemoryAssignment per_node(machine, MemoryPolicy::kPerNode, reserved);
  MemoryState state = per_node.Allocate(per_node.Start({}).value(), narrow).value();
  state = per_node.Allocate(state, wide).value();
  EXPECT_EQ(state.nodes[0].types["memory"].free + state.nodes[1].types["memory"].free, 2 * kGi);
  EXPECT_EQ(per_node.Allocate(state, {.pod = "d", .container = "c", .bytes = {{"memory", 3 * kGi}}})
                .status()
                .code(),
            StatusCode::kResourceExhausted);
  state = per_node.Remove(per_node.Remove(state, "b", "c"), "a", "c");
  EXPECT_EQ(state.nodes, per_node.Start({})->nodes);
}

TEST(MemoryAssignmentTest, PerNodeUsesAgainWhatInitContainersHeld) {
  const Machine machine = Regular(1, 1, 1, 4 * kGi);
  const MemoryAssignment memory(machine, MemoryPolicy::kPerNode, {});
  MemoryState state = memory.Start({}).value();
  state = memory
              .Allocate(state, {.pod = "p",
                                .container = "init",
                                .role = ContainerRole::kInit,
                                .bytes = {{"memory", 3 * kGi}}})
              .value();
  state = memory
              .Allocate(state, {.pod = "p",
                                .container = "app",
                                .bytes = {{"memory", 4 * kGi}},
                                .ended_inits = {"init"}})
              .value();
  EXPECT_EQ(state.nodes[0].types["memory"].free, 0u);
  state = memory.Remove(memory.Remove(state, "p", "init"), "p", "app");
  EXPECT_EQ(state.nodes[0].types["memory"].free, 4 * kGi);
}

TEST(MemoryAssignmentTest, PerNodeStartsOnAMachineThatLostMemory) {
  const Machine before = Regular(2, 1, 1, 4 * kGi);
  const MemoryAssignment old(before, MemoryPolicy::kPerNode, {});
  const MemoryState state =
      old.Allocate(old.Start({}).value(),
                   {.pod = "p", .container = "c", .bytes = {{"memory", 4 * kGi}}})
          .value();
  const Machine after = before.WithNodeMemory({{0, 3 * kGi}});
  const StatusOr<MemoryState> started =
      MemoryAssignment(after, MemoryPolicy::kPerNode, {}).Start(state);
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->nodes.at(0).types.at("memory").free, 0u);
  EXPECT_EQ(started->assignments, state.assignments);
  EXPECT_FALSE(MemoryAssignment(after, MemoryPolicy::kStatic, {}).Start(state).ok());
}

TEST(PodMemoryRequestTest, LeavesOutTypesThatNoAppContainerRequests) {
  EXPECT_EQ(PodMemoryRequest({{ContainerRole::kInit, {{"memory", 4}, {"hugepages-1Gi", 1}}},
                              {ContainerRole::kSidecar, {{"memory", 2}, {"hugepages-2Mi", 1}}},
                              {ContainerRole::kApp, {{"memory", 1}}}}),
            (MemoryBytes{{"memory", 4}}));
}

}  // namespace
}  // namespace qrm
