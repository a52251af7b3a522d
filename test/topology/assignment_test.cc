// CPU, hint and memory placement beyond kubelet's own rows.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/cpu_layout.h"
#include "topology/hint_generation.h"
#include "topology/node_memory.h"
#include "topology/static_cpu_policy.h"
#include "topology/static_memory_policy.h"

namespace qrm::assignment_test {
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

StatusOr<CpuSet> TakeCpus(const Machine& machine, const CpuSet& available, int count,
                          const CpuAssignmentOptions& options) {
  return TakeCpusNear(machine, available, count, {}, options);
}

std::string Taken(const StatusOr<CpuSet>& cpus) {
  return cpus.ok() ? ToString(*cpus) : MessageOf(cpus.status());
}

TEST(TakeCpusTest, TakesWholeCoresOfUnlikeSizes) {
  const Machine machine = Hybrid();
  EXPECT_EQ(Taken(TakeCpus(machine, {0, 2, 3, 4}, 3, {.full_physical_cpus_only = true})), "2-4");
  EXPECT_EQ(TakeCpus(machine, {0, 1, 2, 3}, 3, {.full_physical_cpus_only = true}).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(TakeCpusTest, RejectsToSplitCoresWhenOnlyWholeOnesAreAsked) {
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

TEST(TakeCpusNearTest, ReportsAllRequestedAndAllFreeCpus) {
  const Machine machine = Regular(2, 4, 1);
  const auto taken = TakeCpusNear(machine, machine.cpu_set() - CpuSet{0}, 8, {1});
  EXPECT_EQ(MessageOf(taken.status()),
            "cannot take 8 CPUs: only 7 are free; ask for fewer or free some");
}

TEST(StaticCpuPolicyTest, HintsContainTheNodesOfReusableCpus) {
  const Machine machine = Regular(2, 4, 2);
  const StaticCpuPolicy policy(CpuLayout::LikeKubelet(machine), {}, {0});
  const CpuSet free = machine.cpu_set() - CpuSet{0, 2, 3};
  EXPECT_EQ(policy.Hints({.free = free}, 2).hints().front().nodes, (NumaMask{0}));
  EXPECT_EQ(policy.Hints({.free = free, .reusable = {8, 9}}, 2).hints().front().nodes,
            (NumaMask{1}));
  EXPECT_TRUE(policy.Hints({.free = free, .reusable = {2, 3}}, 16).IsImpossible());
}

TEST(StaticCpuPolicyTest, CountsOnlyCoresWithoutReservedThreadsAsWhole) {
  const Machine machine = Regular(1, 4, 2);
  const StaticCpuPolicy policy(CpuLayout::LikeKubelet(machine), {.full_physical_cpus_only = true},
                               {0});
  const CpuSet free = machine.cpu_set() - CpuSet{0};
  EXPECT_EQ(Taken(policy.Take({.free = free}, 6, {})), "2-7");
  EXPECT_EQ(policy.Take({.free = free}, 8, {}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(policy.Take({.free = free}, 3, {}).status().code(), StatusCode::kInvalidArgument);
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

TEST(StaticMemoryPolicyTest, KeepsGroupsApart) {
  const Machine machine = Regular(2, 1, 1, 4 * kGi);
  const StaticMemoryPolicy policy(machine);
  MemoryTable table = UnusedMemory(machine, {});
  Hold({.nodes = {0}, .type = kOrdinaryMemory, .bytes = kGi}, table);
  const StaticMemoryRequest wide{.bytes = {{kOrdinaryMemory, 5 * kGi}}};
  EXPECT_TRUE(policy.Hints(table, wide).empty());
  EXPECT_EQ(policy.Choose(table, wide, {.nodes = {0, 1}, .preferred = true}).status().code(),
            StatusCode::kFailedPrecondition);
}

// Of the 41,664 groups of three nodes of 64, few are tried; each node here can be of one group.
TEST(StaticMemoryPolicyTest, FillsManyNodesWithGroups) {
  constexpr int kNodes = 64;
  const Machine machine = Regular(kNodes, 1, 1, 4 * kGi);
  const StaticMemoryPolicy policy(machine);
  MemoryTable table = UnusedMemory(machine, {});
  const StaticMemoryRequest wide{.bytes = {{kOrdinaryMemory, 12 * kGi}}};
  for (int group = 0; group < kNodes / 3; ++group) {
    const std::vector<TopologyHint> hints = policy.Hints(table, wide);
    ASSERT_FALSE(hints.empty()) << group << " groups are there";
    EXPECT_TRUE(hints.front().preferred);
    const StatusOr<NumaMask> nodes = policy.Choose(table, wide, hints.front());
    ASSERT_TRUE(nodes.ok()) << MessageOf(nodes.status());
    EXPECT_EQ(nodes->Count(), 3);
    Hold({.nodes = *nodes, .type = kOrdinaryMemory, .bytes = 12 * kGi}, table);
  }
  EXPECT_TRUE(policy.Hints(table, wide).empty());
}

TEST(StaticMemoryPolicyTest, FindsTheOnlyNodesWithEnoughAmongMany) {
  const Machine machine = Regular(64, 1, 1, 4 * kGi);
  std::map<int, MemoryBytes> reserved;
  for (int node = 0; node < 64; ++node) {
    reserved[node][kOrdinaryMemory] = 2 * kGi;
  }
  for (const int rich : {20, 30, 50}) {
    reserved.erase(rich);
  }
  const std::vector<TopologyHint> hints = StaticMemoryPolicy(machine).Hints(
      UnusedMemory(machine, reserved), {.bytes = {{kOrdinaryMemory, 11 * kGi}}});
  ASSERT_FALSE(hints.empty());
  EXPECT_EQ(hints.front(), (TopologyHint{.nodes = {20, 30, 50}, .preferred = true}));
}

TEST(StaticMemoryPolicyTest, OffersAGroupThatHasRoomAmongMany) {
  const Machine machine = Regular(64, 1, 1, 4 * kGi);
  MemoryTable table = UnusedMemory(machine, {});
  Hold({.nodes = {40, 41, 42}, .type = kOrdinaryMemory, .bytes = 3 * kGi}, table);
  EXPECT_THAT(StaticMemoryPolicy(machine).Hints(table, {.bytes = {{kOrdinaryMemory, 9 * kGi}}}),
              testing::Contains(TopologyHint{.nodes = {40, 41, 42}, .preferred = true}));
}

TEST(StaticMemoryPolicyTest, ServesFromWhatEndedInitContainersLeave) {
  const Machine machine = Regular(1, 1, 1, 4 * kGi);
  MemoryTable table = UnusedMemory(machine, {});
  std::vector<MemoryBlock> left = {{.nodes = {0}, .type = kOrdinaryMemory, .bytes = 3 * kGi}};
  Hold(left.front(), table);
  const StaticMemoryPolicy policy(machine);
  EXPECT_TRUE(policy.Choose(table, {{{kOrdinaryMemory, 4 * kGi}}, left}, {}).ok());
  EXPECT_FALSE(policy.Choose(table, {{{kOrdinaryMemory, 4 * kGi}}, {}}, {}).ok());
  EXPECT_EQ(UseAgain({.nodes = {0}, .type = kOrdinaryMemory, .bytes = kGi}, left), kGi);
  EXPECT_EQ(left.front().bytes, 2 * kGi);
}

TEST(NodeMemoryTest, KeepsHugepagesApartFromOrdinaryMemory) {
  MachineParts parts;
  parts.nodes.push_back(
      {.id = 0, .memory_bytes = 8 * kGi, .hugepages = {{2 << 20, 512}, {1 << 30, 2}}});
  const MemoryTable table = UnusedMemory(Machine(std::move(parts)),
                                         {{0, {{kOrdinaryMemory, kGi}, {"hugepages-1Gi", kGi}}}});
  EXPECT_EQ(table.at(0).types.at(kOrdinaryMemory).allocatable, 4 * kGi);
  EXPECT_EQ(table.at(0).types.at("hugepages-2Mi").free, kGi);
  EXPECT_EQ(table.at(0).types.at("hugepages-1Gi").free, kGi);
}

}  // namespace
}  // namespace qrm::assignment_test
