// Memory that is held within overlapping sets of nodes, against every union of nodes.
#include "topology/memory_flow.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/rounds.h"

namespace qrm::memory_flow_test {
namespace {

struct Demand {
  NumaMask nodes;
  uint64_t bytes = 0;
};

struct FlowCase {
  std::string name;  // CamelCase: part of the test's name
  NodeBytes free;
  std::vector<Demand> held;
  NumaMask nodes;
  uint64_t room = 0;
};

class MemoryFlowTest : public testing::TestWithParam<FlowCase> {};

TEST_P(MemoryFlowTest, GivesExactlyTheRoomThatUnionsLeave) {
  const FlowCase& test = GetParam();
  MemoryFlow flow(test.free);
  for (const Demand& demand : test.held) {
    ASSERT_TRUE(flow.Take(demand.nodes, demand.bytes).has_value());
  }
  EXPECT_EQ(flow.Room(test.nodes), test.room);
  EXPECT_FALSE(flow.Fits(test.nodes, test.room + 1));
  EXPECT_TRUE(flow.Fits(test.nodes, test.room));
  EXPECT_TRUE(flow.Take(test.nodes, test.room).has_value());
  EXPECT_EQ(flow.Room(test.nodes), 0U);
}

const FlowCase kCases[] = {
    {"NothingHeld", {{0, 8}, {1, 8}}, {}, {0, 1}, 16},
    {"FullNode", {{0, 8}, {1, 8}}, {{{0}, 8}}, {0}, 0},
    {"OtherNode", {{0, 8}, {1, 8}}, {{{0}, 8}}, {1}, 8},
    {"WideHolderMakesWay", {{0, 8}, {1, 8}}, {{{0, 1}, 10}}, {0}, 6},
    {"WideHolderHasNoWhereToGo", {{0, 8}, {1, 8}}, {{{0, 1}, 10}, {{1}, 6}}, {0}, 0},
    {"HoldersMakeWayInAChain", {{0, 8}, {1, 8}, {2, 8}}, {{{0, 1}, 8}, {{1, 2}, 8}}, {0}, 8},
    {"PairsOfThreeNodesFillAllThree",
     {{0, 8}, {1, 8}, {2, 8}},
     {{{0, 1}, 8}, {{1, 2}, 8}, {{0, 2}, 8}},
     {0, 1, 2},
     0},
    {"NodeThatIsNotThere", {{0, 8}}, {}, {0, 7}, 8},
    {"NumbersWithGaps", {{3, 8}, {70, 8}}, {{{3, 70}, 12}}, {70}, 4},
};
INSTANTIATE_TEST_SUITE_P(Table, MemoryFlowTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

/// The holder of `bytes` that fit.
std::size_t Taken(MemoryFlow& flow, const NumaMask& nodes, uint64_t bytes) {
  const std::optional<std::size_t> holder = flow.Take(nodes, bytes);
  EXPECT_TRUE(holder.has_value());
  return holder.value_or(0);
}

TEST(MemoryFlowPartsTest, FillsNodesInTurn) {
  MemoryFlow flow({{0, 8}, {1, 8}});
  EXPECT_EQ(flow.PartsOf(Taken(flow, {0, 1}, 10)), (NodeBytes{{0, 8}, {1, 2}}));
}

TEST(MemoryFlowPartsTest, LeavesPartsWhereTheyAreUnlessAnotherContainerNeedsTheRoom) {
  MemoryFlow flow({{0, 8}, {1, 8}});
  const std::size_t wide = Taken(flow, {0, 1}, 6);
  ASSERT_TRUE(flow.Take({1}, 8).has_value());
  EXPECT_EQ(flow.PartsOf(wide), (NodeBytes{{0, 6}, {1, 0}}));
  ASSERT_TRUE(flow.Take({0}, 2).has_value());
  EXPECT_EQ(flow.PartsOf(wide), (NodeBytes{{0, 6}, {1, 0}}));
}

TEST(MemoryFlowPartsTest, MovesNoMoreThanTheNewContainerNeeds) {
  MemoryFlow flow({{0, 8}, {1, 8}});
  const std::size_t wide = Taken(flow, {0, 1}, 8);
  ASSERT_TRUE(flow.Take({0}, 3).has_value());
  EXPECT_EQ(flow.PartsOf(wide), (NodeBytes{{0, 5}, {1, 3}}));
}

TEST(MemoryFlowPartsTest, RejectionChangesNothing) {
  MemoryFlow flow({{0, 8}, {1, 8}});
  const std::size_t wide = Taken(flow, {0, 1}, 10);
  EXPECT_FALSE(flow.Take({0}, 7).has_value());
  EXPECT_EQ(flow.PartsOf(wide), (NodeBytes{{0, 8}, {1, 2}}));
  EXPECT_EQ(flow.Free(1), 6U);
}

TEST(MemoryFlowPartsTest, GrowsAsFarAsThereIsRoom) {
  MemoryFlow flow({{0, 2}, {1, 8}});
  const std::size_t holder = flow.Add({0}, {{0, 6}});
  EXPECT_EQ(flow.Grow(holder, 5), 2U);
  EXPECT_EQ(flow.PartsOf(holder), (NodeBytes{{0, 8}}));
}

/// Hall's condition literally: for each union of nodes, the promised memory against the existing.
class Unions {
 public:
  Unions(int nodes, NodeBytes capacity) : nodes_(nodes), capacity_(std::move(capacity)) {}

  void Hold(const Demand& demand) { demands_.push_back(demand); }

  uint64_t Room(const NumaMask& nodes) const {
    uint64_t room = std::numeric_limits<uint64_t>::max();
    for (int bits = 0; bits < 1 << nodes_; ++bits) {
      const NumaMask all = MaskOf(bits);
      if (nodes.IsSubsetOf(all)) {
        room = std::min(room, Left(all));
      }
    }
    return room;
  }

  static NumaMask MaskOf(int bits) {
    NumaMask mask;
    for (int node = 0; bits >> node != 0; ++node) {
      if ((bits >> node & 1) != 0) {
        mask.Add(node);
      }
    }
    return mask;
  }

 private:
  uint64_t Left(const NumaMask& all) const {
    uint64_t left = 0;
    for (const int node : all) {
      left += capacity_.at(node);
    }
    for (const Demand& demand : demands_) {
      left -= demand.nodes.IsSubsetOf(all) ? demand.bytes : 0;
    }
    return left;
  }

  int nodes_;
  NodeBytes capacity_;
  std::vector<Demand> demands_;
};

TEST(MemoryFlowPropertyTest, HasTheRoomThatNoUnionOfNodesForbids) {
  std::mt19937 random(20261125);
  const auto below = [&random](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  for (int round = 0; round < test::Rounds(3'000); ++round) {
    const int count = 1 + below(6);
    NodeBytes capacity;
    for (int node = 0; node < count; ++node) {
      capacity[node] = static_cast<uint64_t>(below(12));
    }
    MemoryFlow flow(capacity);
    Unions unions(count, capacity);
    for (int step = 0; step < 12; ++step) {
      const Demand demand{.nodes = Unions::MaskOf(1 + below((1 << count) - 1)),
                          .bytes = static_cast<uint64_t>(below(10))};
      const uint64_t room = unions.Room(demand.nodes);
      ASSERT_EQ(flow.Room(demand.nodes), room) << "round " << round;
      ASSERT_EQ(flow.Fits(demand.nodes, demand.bytes), demand.bytes <= room);
      ASSERT_EQ(flow.Take(demand.nodes, demand.bytes).has_value(), demand.bytes <= room);
      if (demand.bytes <= room) {
        unions.Hold(demand);
      }
    }
  }
}

}  // namespace
}  // namespace qrm::memory_flow_test
