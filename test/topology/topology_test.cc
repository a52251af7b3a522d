// A Machine's answers about its parts.
#include <utility>

#include <gtest/gtest.h>

#include "topology/machine.h"

namespace qrm::topology_test {
namespace {

MachineParts Parts() {
  MachineParts parts;
  parts.nodes = {{.id = 2, .package = 1}, {.id = 0, .package = 0}};
  parts.distances = {{10, 21}, {22, 10}};
  parts.cpus = {{.id = 3, .core = 1, .l3 = 1, .node = 2, .package = 1},
                {.id = 1, .core = 1, .l3 = 1, .node = 2, .package = 1},
                {.id = 0, .core = 0, .l3 = 0, .node = 0, .package = 0, .has_l3 = false}};
  return parts;
}

TEST(MachineTest, SortsPartsWithTheirDistances) {
  const Machine machine(Parts());
  EXPECT_EQ(machine.nodes()[0].id, 0);
  EXPECT_EQ(machine.Distance(2, 0), 21u);
  EXPECT_EQ(machine.Distance(0, 2), 22u);
  EXPECT_EQ(machine.cpus()[1].id, 1);
}

TEST(MachineTest, AnswersNothingForMissingParts) {
  const Machine machine(Parts());
  EXPECT_EQ(machine.FindCpu(2), nullptr);
  EXPECT_EQ(machine.FindNode(1), nullptr);
  EXPECT_EQ(machine.FindNode(-1), nullptr);
  EXPECT_TRUE(machine.CpusOf({1, 7}).Empty());
  EXPECT_EQ(machine.Distance(0, 7), 20u);
}

TEST(MachineTest, CountsOnlyL3sThatAreKnown) {
  const Machine machine(Parts());
  EXPECT_EQ(machine.l3_count(), 1);
  EXPECT_EQ(machine.core_count(), 2);
  EXPECT_EQ(machine.package_count(), 2);
}

TEST(MachineTest, WidensCpusToCoresAndNodesToPackages) {
  const Machine machine(Parts());
  EXPECT_EQ(machine.CoresOf({3}), (CpuSet{1, 3}));
  EXPECT_EQ(machine.PackagesOf({2}), (CpuSet{1, 3}));
  EXPECT_EQ(machine.NodesOf({0, 1}), (NumaMask{0, 2}));
}

TEST(MachineTest, MemoryWithoutCpusIsNearToTheLeastDistance) {
  MachineParts parts = Parts();
  for (const int id : {5, 6, 7}) {
    parts.nodes.push_back({.id = id, .package = 1});
  }
  parts.distances = {{10, 21, 17, 21, 22},
                     {21, 10, 21, 21, 12},
                     {17, 21, 10, 30, 30},
                     {21, 21, 30, 10, 30},
                     {22, 12, 30, 30, 10}};
  const Machine machine(std::move(parts));
  EXPECT_EQ(machine.FindNode(0)->homes, (NumaMask{0})) << "it has CPUs";
  EXPECT_EQ(machine.FindNode(5)->homes, (NumaMask{2}));
  EXPECT_EQ(machine.FindNode(7)->homes, (NumaMask{0}));
  EXPECT_EQ(machine.FindNode(6)->homes, (NumaMask{2})) << "of its package, among equals";
}

TEST(MachineTest, ChangesTheKindOfMemoryOfACopy) {
  const Machine machine(Parts());
  const Machine changed = machine.WithMemoryKinds({{2, MemoryKind::kHbm}, {9, MemoryKind::kCxl}});
  EXPECT_EQ(changed.FindNode(2)->memory_kind, MemoryKind::kHbm);
  EXPECT_EQ(machine.FindNode(2)->memory_kind, MemoryKind::kDram);
}

TEST(MachineTest, ChangesTheMemoryOfACopy) {
  const Machine machine(Parts());
  const Machine changed = machine.WithNodeMemory({{2, 4096}, {9, 1}});
  EXPECT_EQ(changed.FindNode(2)->memory_bytes, 4096u);
  EXPECT_EQ(machine.FindNode(2)->memory_bytes, 0u);
}

}  // namespace
}  // namespace qrm::topology_test
