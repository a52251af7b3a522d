// Which CPUs pools take and give up.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/cpu/place.h"
#include "test/plugins/cpu/drawn_node.h"

namespace qrm::cpu::pick_test {
namespace {

/// Two NUMA nodes of eight cores with two threads: node 0 has cores 0-7 with CPUs i and i+16, node
/// 1 cores 8-15. Four cores share an L3 cache.
Machine TwoNodes() {
  MachineParts parts;
  for (int cpu = 0; cpu < 32; ++cpu) {
    const int core = cpu % 16;
    const int node = core / 8;
    parts.cpus.push_back(
        {.id = cpu, .core = core, .l3 = core - core % 4, .node = node, .package = node});
  }
  parts.nodes = {{.id = 0, .package = 0}, {.id = 1, .package = 1}};
  return Machine(std::move(parts));
}

struct PickCase {
  std::string name;
  std::string own;
  std::string free;
  int count;
  std::string want;
};
class PickTest : public testing::TestWithParam<PickCase> {};

TEST_P(PickTest, TakesTheNearest) {
  const PickCase& test = GetParam();
  EXPECT_EQ(ToString(PickCpus(TwoNodes(), *CpuSet::Parse(test.own), *CpuSet::Parse(test.free),
                              test.count)),
            test.want);
}

const PickCase kPicks[] = {
    {"WholeCores", "", "0-31", 4, "0-1,16-17"},
    {"HalfACoreLast", "", "0-31", 3, "0-1,16"},
    {"TheRestOfItsCore", "0-1", "2-31", 2, "16-17"},
    {"OnItsCacheAndNode", "8,24", "0-7,9-23,25-31", 4, "9-10,25-26"},
    {"OnItsNodeBeyondItsCache", "8-11,24-27", "0-7,12-23,28-31", 2, "12,28"},
    {"OnAnotherNodeWhenItsOwnIsFull", "8-15,24-31", "0-7,16-23", 2, "0,16"},
    {"HalfOfABrokenCore", "", "0-2,16-17", 1, "2"},
    {"TheNodeThatHoldsAllWithLeastToSpare", "", "0-7,16-23,12-13,28-29", 4, "12-13,28-29"},
    {"MostOfItWhereMostIsFree", "", "0-3,8-13", 8, "0-1,8-13"},
    {"StaysWhereItBegan", "", "0-4,16-20,8-13,24-29", 12, "8-13,24-29"},
    {"AllThatThereIs", "0", "1,2", 5, "1-2"},
    {"Nothing", "0", "1-31", 0, ""},
};
INSTANTIATE_TEST_SUITE_P(Cases, PickTest, testing::ValuesIn(kPicks),
                         [](const auto& param_info) { return param_info.param.name; });

struct DropCase {
  std::string name;
  std::string own;
  int count;
  std::string want;
};
class DropTest : public testing::TestWithParam<DropCase> {};

TEST_P(DropTest, GivesUpTheFarthest) {
  const DropCase& test = GetParam();
  EXPECT_EQ(ToString(DropCpus(TwoNodes(), *CpuSet::Parse(test.own), test.count)), test.want);
}

const DropCase kDrops[] = {
    {"TheNodeOfWhichItHasFewest", "0-3,16-19,8-9", 2, "8-9"},
    {"TheCacheOfWhichItHasFewest", "0-3,16-19,4,20", 2, "4,20"},
    {"AWholeCore", "0-1,16-17", 2, "1,17"},
    {"HalfOfABrokenCore", "0-1,16", 1, "1"},
    {"HalfOfTheLastCore", "0-1,16-17", 1, "17"},
    {"AllThatThereIs", "0-1", 5, "0-1"},
    {"Nothing", "0-1", 0, ""},
};
INSTANTIATE_TEST_SUITE_P(Cases, DropTest, testing::ValuesIn(kDrops),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(PickTest, GrowsIntoTheOtherNodeOfItsPackage) {
  MachineParts parts;
  for (int cpu = 0; cpu < 16; ++cpu) {
    parts.cpus.push_back(
        {.id = cpu, .core = cpu, .l3 = cpu - cpu % 4, .node = cpu / 4, .package = cpu / 8});
  }
  parts.nodes = {{.id = 0}, {.id = 1}, {.id = 2, .package = 1}, {.id = 3, .package = 1}};
  const CpuSet own = *CpuSet::Parse("8-11");
  EXPECT_EQ(ToString(PickCpus(Machine(std::move(parts)), own, *CpuSet::Parse("0-7,12-15"), 3)),
            "12-14");
}

TEST(PickTest, GivesBackItsCpus) {
  const Machine machine = TwoNodes();
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    CpuSet own;
    CpuSet free;
    for (int cpu = 0; cpu < 32; ++cpu) {
      const auto who = random() % 3;
      if (who == 0) {
        own.Add(cpu);
      } else if (who == 1) {
        free.Add(cpu);
      }
    }
    const int count = static_cast<int>(random() % 12);
    const CpuSet more = PickCpus(machine, own, free, count);
    ASSERT_TRUE(more.IsSubsetOf(free));
    ASSERT_EQ(more.Count(), std::min(count, free.Count()));
    const CpuSet less = DropCpus(machine, own | more, more.Count());
    ASSERT_TRUE(less.IsSubsetOf(own | more));
    ASSERT_EQ(less.Count(), more.Count());
    ASSERT_LE(machine.NodesOf((own | more) - less).Count(), machine.NodesOf(own | more).Count());
  }
}

/// The fewest NUMA nodes on which an owner of `own` can be with `count` CPUs of `free` more, by a
/// search through all sets of them.
int FewestNodes(const Machine& machine, const CpuSet& own, const CpuSet& free, int count) {
  const std::vector<int> cpus(free.begin(), free.end());
  int fewest = static_cast<int>(machine.nodes().size());
  for (uint32_t bits = 0; bits < (1U << cpus.size()); ++bits) {
    if (std::popcount(bits) != count) {
      continue;
    }
    CpuSet all = own;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      if ((bits >> i & 1U) != 0) {
        all.Add(cpus[i]);
      }
    }
    fewest = std::min(fewest, machine.NodesOf(all).Count());
  }
  return fewest;
}

TEST(PickOracleTest, NoOtherCpusOfSmallMachinesAreOnFewerNodes) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    MachineParts parts = DrawMachine(dice);
    while (parts.cpus.size() > 16) {
      parts = DrawMachine(dice);
    }
    const Machine machine(parts);
    CpuSet own;
    CpuSet free;
    for (const Cpu& cpu : parts.cpus) {
      if (dice.OneIn(4)) {
        own.Add(cpu.id);
      } else if (!dice.OneIn(4)) {
        free.Add(cpu.id);
      }
    }
    const int count = dice.Below(free.Count() + 1);
    const CpuSet more = PickCpus(machine, own, free, count);
    ASSERT_EQ(more.Count(), count) << "seed " << seed;
    ASSERT_EQ(machine.NodesOf(own | more).Count(), FewestNodes(machine, own, free, count))
        << "seed " << seed << ": " << ToString(more) << " of " << ToString(free) << " for "
        << ToString(own);
  }
}

}  // namespace
}  // namespace qrm::cpu::pick_test
