// Sizes of elastic pools: the worked vectors, and every split of small machines.
#include "plugins/cpu/sizing/pool_size.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace qrm::cpu::pool_size_test {
namespace {

struct SizeCase {
  std::string name;
  int capacity;
  PoolAsks asks;
  PoolSizes want;
};
class PoolSizeTest : public testing::TestWithParam<SizeCase> {};

TEST_P(PoolSizeTest, SharesTheCpus) {
  EXPECT_EQ(SizePools(GetParam().asks, GetParam().capacity), GetParam().want);
}

PoolAsk Ask(int min, int wish) {
  return {.min = min, .wish = wish, .max = wish};
}

PoolAsk First(PoolAsk ask) {
  ask.priority = 1;
  return ask;
}

PoolAsk Weighing(int weight, PoolAsk ask) {
  ask.weight = weight;
  return ask;
}

PoolAsk InUnits(int unit, PoolAsk ask) {
  ask.unit = unit;
  return ask;
}

const SizeCase kSizes[] = {
    {"EqualWishes", 16, {{"X", Ask(2, 10)}, {"Y", Ask(2, 10)}}, {{"X", 8}, {"Y", 8}}},
    {"InProportion", 16, {{"X", Ask(2, 4)}, {"Y", Ask(2, 20)}}, {{"X", 3}, {"Y", 13}}},
    {"TiesByName",
     5,
     {{"a", Ask(1, 3)}, {"b", Ask(1, 3)}, {"c", Ask(1, 3)}},
     {{"a", 2}, {"b", 2}, {"c", 1}}},
    {"WhatFillsNoUnitGoesOn",
     4,
     {{"X", InUnits(2, Ask(2, 10))}, {"Y", Ask(1, 9)}},
     {{"X", 2}, {"Y", 2}}},
    {"PriorityFirst",
     60,
     {{"X", First(Ask(8, 48))}, {"Y", Ask(2, 30)}, {"Z", Ask(2, 2)}},
     {{"X", 48}, {"Y", 10}, {"Z", 2}}},
    {"EnoughForAll", 16, {{"X", Ask(2, 4)}, {"Y", Ask(0, 5)}}, {{"X", 4}, {"Y", 5}}},
    {"ByWeight", 9, {{"X", Weighing(2, Ask(0, 9))}, {"Y", Ask(0, 9)}}, {{"X", 6}, {"Y", 3}}},
    {"WeightGivesNobodyMoreThanItsWish",
     10,
     {{"X", Weighing(100, Ask(0, 3))}, {"Y", Ask(0, 9)}},
     {{"X", 3}, {"Y", 7}}},
    {"LostCpusAreMissedByTheLastFirst",
     5,
     {{"X", First(Ask(4, 4))}, {"Y", Ask(4, 4)}, {"Z", Ask(2, 2)}},
     {{"X", 3}, {"Y", 1}, {"Z", 1}}},
    {"MorePoolsThanCpus",
     2,
     {{"X", First(Ask(4, 4))}, {"Y", Ask(4, 4)}, {"Z", Ask(2, 2)}},
     {{"X", 1}, {"Y", 1}, {"Z", 0}}},
};
INSTANTIATE_TEST_SUITE_P(Vectors, PoolSizeTest, testing::ValuesIn(kSizes),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(PoolWishTest, IsTheRequestInWholeUnitsAndWithinBounds) {
  const PoolAsk ask = {.min = 2, .max = 12};
  EXPECT_EQ(WishOf({.milli_cpus = 3500, .containers = 2}, 100, ask), 4);
  EXPECT_EQ(WishOf({.milli_cpus = 3500, .containers = 2}, 150, ask), 6);
  EXPECT_EQ(WishOf({.milli_cpus = 3500, .containers = 2}, 100, InUnits(8, ask)), 8);
  EXPECT_EQ(WishOf({.milli_cpus = 500, .containers = 1}, 100, ask), 2);
  EXPECT_EQ(WishOf({.milli_cpus = 60000, .containers = 9}, 100, ask), 12);
}

TEST(PoolWishTest, IsACpuWhileThereAreContainersAndNoneWithout) {
  const PoolAsk ask = {.min = 0, .max = 12};
  EXPECT_EQ(WishOf({.containers = 1}, 100, ask), 1);
  EXPECT_EQ(WishOf({}, 100, ask), 0);
}

TEST(SettledPoolTest, KeepsSpareCpusUntilItMayShrink) {
  const PoolAsks asks = {{"X", {.min = 2, .wish = 4, .max = 20}}};
  EXPECT_EQ(SettlePools(asks, {{"X", {.size = 10}}}, 16).at("X"), 10);
  EXPECT_EQ(SettlePools(asks, {{"X", {.size = 10, .may_shrink = true}}}, 16).at("X"), 4);
}

TEST(SettledPoolTest, ShrinksByItsStep) {
  const PoolAsks asks = {{"X", {.min = 2, .wish = 4, .max = 20}}};
  PoolHeld held = {.size = 10, .may_shrink = true, .step = 4};
  held.size = SettlePools(asks, {{"X", held}}, 16).at("X");
  EXPECT_EQ(held.size, 6);
  held.size = SettlePools(asks, {{"X", held}}, 16).at("X");
  EXPECT_EQ(held.size, 4);
}

TEST(SettledPoolTest, GivesSpareCpusToPoolsThatNeedThem) {
  const PoolAsks asks = {{"X", {.min = 2, .wish = 4, .max = 20}},
                         {"Y", {.min = 2, .wish = 10, .max = 20}}};
  EXPECT_EQ(SettlePools(asks, {{"X", {.size = 14}}, {"Y", {.size = 2}}}, 16),
            (PoolSizes{{"X", 6}, {"Y", 10}}));
}

TEST(SettledPoolTest, KeepsNoMoreThanItsNewMaximum) {
  const PoolAsks asks = {{"X", {.min = 2, .wish = 4, .max = 6}}};
  EXPECT_EQ(SettlePools(asks, {{"X", {.size = 10}}}, 16).at("X"), 6);
}

/// Every combination of sizes for pools of one priority, weight and unit.
class Splits {
 public:
  Splits(const PoolAsks& asks, int capacity) : capacity_(capacity) {
    int rest = capacity;
    for (const auto& [name, ask] : asks) {
      asks_.push_back(ask);
      rest -= ask.min;
      wants_ += ask.wish - ask.min;
    }
    rest_ = std::min(rest, wants_);
  }

  /// The split that hands out most, nearest to the exact proportion; of equal splits, the one that
  /// gives the first names most.
  std::vector<int> Best() {
    std::vector<int> sizes;
    Walk(sizes, 0);
    return best_;
  }

 private:
  void Walk(std::vector<int>& sizes, int used) {
    if (used > capacity_) {
      return;
    }
    if (sizes.size() == asks_.size()) {
      Judge(sizes, used);
      return;
    }
    const PoolAsk& ask = asks_[sizes.size()];
    for (int size = ask.min; size <= ask.wish; ++size) {
      sizes.push_back(size);
      Walk(sizes, used + size);
      sizes.pop_back();
    }
  }

  void Judge(const std::vector<int>& sizes, int used) {
    // Squared distances from rest * want / wants, times wants squared: whole numbers.
    int64_t distance = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const int64_t exact = int64_t{rest_} * (asks_[i].wish - asks_[i].min);
      const int64_t off = int64_t{sizes[i] - asks_[i].min} * wants_ - exact;
      distance += off * off;
    }
    std::vector<int> by_name = sizes;
    std::transform(by_name.begin(), by_name.end(), by_name.begin(), std::negate<>());
    const auto score = std::tuple(-used, distance, by_name);
    if (best_.empty() || score < best_score_) {
      best_ = sizes;
      best_score_ = score;
    }
  }

  int capacity_;
  std::vector<PoolAsk> asks_;
  int rest_ = 0;
  int wants_ = 0;
  std::vector<int> best_;
  std::tuple<int, int64_t, std::vector<int>> best_score_;
};

TEST(PoolSizeOracleTest, FindsTheBestOfAllSplitsOfSmallMachines) {
  std::mt19937 random(1);
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  for (int round = 0; round < 3000; ++round) {
    PoolAsks asks;
    int capacity = below(8);
    for (const char* name : {"a", "b", "c", "d"}) {
      const int min = below(3);
      asks[name] = Ask(min, min + below(6));
      capacity += min;
    }
    std::vector<int> sizes;
    for (const auto& [name, size] : SizePools(asks, capacity)) {
      sizes.push_back(size);
    }
    ASSERT_EQ(sizes, Splits(asks, capacity).Best()) << "round " << round;
  }
}

TEST(PoolSizeOracleTest, NeverWastesBreaksBoundsOrPassesPrioritiesBy) {
  std::mt19937 random(2);
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  for (int round = 0; round < 3000; ++round) {
    PoolAsks asks;
    int capacity = below(40);
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      const int unit = 1 << below(3);
      const int min = below(4);
      asks[name] = {.min = min,
                    .wish = min + below(20),
                    .max = 30,
                    .priority = below(3),
                    .weight = 1 + below(4),
                    .unit = unit};
      capacity += min;
    }
    const PoolSizes sizes = SizePools(asks, capacity);
    const int rest = std::accumulate(sizes.begin(), sizes.end(), capacity,
                                     [](int left, const auto& size) { return left - size.second; });
    ASSERT_GE(rest, 0);
    for (const auto& [name, ask] : asks) {
      const int size = sizes.at(name);
      ASSERT_TRUE(size >= ask.min && size <= ask.wish && (size - ask.min) % ask.unit == 0);
      const bool lacks = ask.wish - size >= ask.unit;
      ASSERT_FALSE(lacks && rest >= ask.unit) << name << " could have had a unit more";
      for (const auto& [other, theirs] : asks) {
        ASSERT_FALSE(lacks && theirs.priority < ask.priority &&
                     sizes.at(other) - theirs.min + rest >= ask.unit)
            << other << " has what " << name << " needs first";
      }
    }
  }
}

}  // namespace
}  // namespace qrm::cpu::pool_size_test
