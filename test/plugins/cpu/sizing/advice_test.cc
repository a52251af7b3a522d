// Advice is clipped, expires, and is never more than a wish (P17 of a stream).
#include "plugins/cpu/sizing/advice.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"

namespace qrm::cpu::advice_test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

AdvisorConfig Advising(std::vector<std::string> pools) {
  return {.socket = "/run/advisor.sock", .pools = std::move(pools)};
}

/// 64 CPUs except a reserved core: share asks for 40 of them, reclaim has 2 and goes by 4.
AdvisedNode Node() {
  return {
      .generation = 7,
      .asks = {{"default", {.min = 2, .wish = 2, .max = 2}},
               {"reclaim", {.min = 2, .wish = 2, .max = 40}},
               {"share",
                {.min = 16, .wish = 38, .firm = 38, .max = 60, .priority = 1, .below_firm = true}}},
      .sizes = {{"default", 2}, {"reclaim", 2}, {"share", 38}},
      .steps = {{"reclaim", 4}},
      .capacity = 62};
}

AdviceCall Call(std::vector<Advice> entries) {
  return {.advisor = "a", .generation = 7, .entries = std::move(entries)};
}

const SteadyPoint kStart{seconds(1000)};

TEST(AdviceTest, IsClippedAndSaysByWhat) {
  struct Case {
    const char* about;
    Advice advice;
    int applied;
    AdviceClip clipped;
  };
  const Case cases[] = {
      {"as it is", {"share", 38, ""}, 38, AdviceClip::kNothing},
      {"less", {"share", 20, ""}, 20, AdviceClip::kNothing},
      {"below the minimum", {"share", 0, ""}, 16, AdviceClip::kMin},
      {"a negative count", {"share", -5, ""}, 16, AdviceClip::kMin},
      {"above the maximum, which there is not", {"share", 1000, ""}, 58, AdviceClip::kCapacity},
      {"one step", {"reclaim", 30, ""}, 6, AdviceClip::kStep},
      {"within a step", {"reclaim", 5, ""}, 5, AdviceClip::kNothing},
      {"no pool", {"nowhere", 5, ""}, 0, AdviceClip::kUnknown},
      {"a pool that is not to be advised", {"default", 5, ""}, 0, AdviceClip::kUnknown},
  };
  for (const Case& one : cases) {
    AdviceBook book(Advising({"share", "reclaim"}));
    const auto results = book.Take(Call({one.advice}), Node(), kStart);
    ASSERT_TRUE(test::IsOk(results.status())) << one.about;
    EXPECT_THAT(*results, ElementsAre(AdviceResult{one.advice.pool, one.applied, one.clipped}))
        << one.about;
  }
}

TEST(AdviceTest, GoesStepByStepUntilNothingIsLeft) {
  AdvisedNode node = Node();
  PoolSizes advised;
  std::vector<int> sizes;
  for (int plan = 0; plan < 8; ++plan) {
    advised = NextAdvice(node, advised, {{"reclaim", 30}});
    node.sizes = SizePools(WithAdvice(node.asks, advised), node.capacity);
    sizes.push_back(node.sizes.at("reclaim"));
  }
  EXPECT_THAT(sizes, ElementsAre(6, 10, 14, 18, 22, 22, 22, 22));
  AdviceBook book(Advising({"reclaim"}));
  EXPECT_EQ(book.Take(Call({{"reclaim", 30, ""}}), node, kStart)->front().clipped,
            AdviceClip::kCapacity);
}

TEST(AdviceTest, ReplacesTheRequestsOfContainers) {
  const PoolAsks asks = WithAdvice(Node().asks, {{"share", 20}, {"gone", 3}});
  EXPECT_EQ(asks.at("share").wish, 20);
  EXPECT_EQ(asks.at("share").firm, 20);
  EXPECT_EQ(asks.at("share").sought, 20);
  EXPECT_EQ(asks.at("reclaim"), Node().asks.at("reclaim"));
  EXPECT_FALSE(asks.contains("gone"));
}

TEST(AdviceTest, LeavesPoolsTheirRequestsUnlessTheyMayFallBelow) {
  AdvisedNode node = Node();
  node.steps["share"] = 2;
  EXPECT_EQ(WithAdvice(node.asks, {{"share", 20}}).at("share").wish, 20);
  EXPECT_EQ(NextAdvice(node, {}, {{"share", 20}}).at("share"), 36) << "step by step";
  EXPECT_EQ(NextAdvice(node, {{"share", 20}}, {{"share", 50}}).at("share"), 38) << "at once";

  node.asks.at("share").below_firm = false;
  EXPECT_EQ(WithAdvice(node.asks, {{"share", 20}}).at("share").wish, 38);
  EXPECT_EQ(NextAdvice(node, {}, {{"share", 20}}).at("share"), 38);
  AdviceBook book(Advising({"share"}));
  EXPECT_THAT(*book.Take(Call({{"share", 20, ""}}), node, kStart),
              ElementsAre(AdviceResult{"share", 38, AdviceClip::kRequests}));
}

TEST(AdviceTest, OfAnEarlierOrLaterGenerationCountsForNothing) {
  AdviceBook book(Advising({"share"}));
  AdviceCall call = Call({{"share", 20, ""}});
  for (const uint64_t generation : {6UL, 8UL}) {
    call.generation = generation;
    const auto results = book.Take(call, Node(), kStart);
    ASSERT_TRUE(test::IsOk(results.status()));
    EXPECT_EQ(results->front(), (AdviceResult{"share", 38, AdviceClip::kStale}));
    EXPECT_THAT(book.InForce(kStart), IsEmpty());
  }
}

TEST(AdviceTest, ReplacesWhatTheAdvisorSaidBefore) {
  AdviceBook book(Advising({"share", "reclaim"}));
  ASSERT_TRUE(test::IsOk(
      book.Take(Call({{"share", 20, ""}, {"reclaim", 4, ""}}), Node(), kStart).status()));
  ASSERT_TRUE(test::IsOk(book.Take(Call({{"reclaim", 6, ""}}), Node(), kStart).status()));
  EXPECT_THAT(book.InForce(kStart), ElementsAre(Pair("reclaim", 6)));
}

TEST(AdviceTest, CountsUntilItsLeaseIsOverAndAsLongAsItIsHeld) {
  AdvisorConfig config = Advising({"share"});
  config.lease = seconds(30);
  config.hold = seconds(300);
  AdviceBook book(config);
  ASSERT_TRUE(test::IsOk(book.Take(Call({{"share", 20, ""}}), Node(), kStart).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(329)), ElementsAre(Pair("share", 20)));
  EXPECT_THAT(book.InForce(kStart + seconds(330)), IsEmpty());
}

TEST(AdviceTest, HasNoLongerLeaseThanTheConfiguredOne) {
  AdviceBook book(Advising({"share"}));
  AdviceCall call = Call({{"share", 20, ""}});
  call.lease = seconds(3600);
  ASSERT_TRUE(test::IsOk(book.Take(call, Node(), kStart).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(30)), IsEmpty());
  call.lease = seconds(5);
  ASSERT_TRUE(test::IsOk(book.Take(call, Node(), kStart).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(5)), IsEmpty());
}

TEST(AdviceTest, OfASecondAdvisorIsForPoolsWithoutAnAdvisor) {
  AdvisorConfig config = Advising({"share", "reclaim"});
  config.hold = seconds(300);
  AdviceBook book(config);
  ASSERT_TRUE(test::IsOk(book.Take(Call({{"share", 20, ""}}), Node(), kStart).status()));
  AdviceCall second = Call({{"share", 30, ""}});
  second.advisor = "b";
  const auto refused = book.Take(second, Node(), kStart + seconds(29));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("leads pool share"));

  second.entries = {{"reclaim", 4, ""}};
  EXPECT_TRUE(test::IsOk(book.Take(second, Node(), kStart + seconds(29)).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(29)),
              ElementsAre(Pair("reclaim", 4), Pair("share", 20)));

  second.entries = {{"share", 30, ""}};
  EXPECT_TRUE(test::IsOk(book.Take(second, Node(), kStart + seconds(30)).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(30)), ElementsAre(Pair("share", 30)));
}

TEST(AdviceTest, ByUseYieldsToEveryOtherAdvisor) {
  AdvisorConfig config = Advising({"share", "reclaim"});
  config.hold = seconds(60);
  AdviceBook book(config);
  AdviceCall by_use = Call({{"share", 20, ""}, {"reclaim", 4, ""}});
  by_use.advisor = kByUse;
  by_use.rank = AdvisorRank::kBuiltIn;
  by_use.lease = seconds(180);
  ASSERT_TRUE(test::IsOk(book.Take(by_use, Node(), kStart).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(100)),
              ElementsAre(Pair("reclaim", 4), Pair("share", 20)));
  ASSERT_TRUE(test::IsOk(book.Take(Call({{"share", 30, ""}}), Node(), kStart).status()));
  ASSERT_TRUE(test::IsOk(book.Take(by_use, Node(), kStart + seconds(10)).status()));
  ASSERT_TRUE(test::IsOk(book.Take(by_use, Node(), kStart + seconds(80)).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(80)),
              ElementsAre(Pair("reclaim", 4), Pair("share", 30)));
  ASSERT_TRUE(test::IsOk(book.Take(by_use, Node(), kStart + seconds(90)).status()));
  EXPECT_THAT(book.InForce(kStart + seconds(90)),
              ElementsAre(Pair("reclaim", 4), Pair("share", 20)));
}

/// A node of three pools, with advice for these and for other pools.
class AdviceStream {
 public:
  explicit AdviceStream(unsigned seed) : random_(seed) {
    node_.generation = 7;
    node_.capacity = Below(60);
    for (const char* pool : {"default", "reclaim", "share"}) {
      PoolAsk& ask = node_.asks[pool];
      ask.min = Below(4);
      ask.max = ask.min + Below(40);
      ask.wish = ask.min + Below(ask.max - ask.min + 1);
      ask.firm = ask.wish;
      ask.priority = Below(2);
      ask.below_firm = Below(2) == 0;
      node_.steps[pool] = Below(4);
      node_.capacity += ask.min;
    }
    Plan({});
  }

  /// The next random advice, mostly for more than is available.
  AdviceCall Next() {
    constexpr int kWild[] = {-2147483647 - 1, -1, 0, 2147483647};
    AdviceCall call{.advisor = Below(2) == 0 ? "a" : "b",
                    .generation = static_cast<uint64_t>(Below(4) == 0 ? 6 : 7)};
    for (const char* pool : {"default", "nowhere", "reclaim", "share"}) {
      if (Below(2) == 0) {
        call.entries.push_back({pool, Below(3) == 0 ? kWild[Below(4)] : Below(60), ""});
      }
    }
    return call;
  }

  /// Sizes pools as advised, by one step.
  void Plan(const PoolSizes& in_force) {
    const PoolSizes before = std::exchange(advised_, NextAdvice(node_, advised_, in_force));
    node_.sizes = SizePools(WithAdvice(node_.asks, advised_), node_.capacity);
    for (const auto& [pool, cpus] : advised_) {
      const auto was = before.find(pool);
      ASSERT_TRUE(was == before.end() || node_.steps.at(pool) == 0 ||
                  std::abs(cpus - was->second) <= node_.steps.at(pool) ||
                  (cpus > was->second && cpus <= node_.asks.at(pool).firm));
    }
  }
  /// Repeats until nothing changes any more.
  PoolSizes Rest(const PoolSizes& in_force) {
    for (int plan = 0; plan < 100; ++plan) {
      Plan(in_force);
    }
    return node_.sizes;
  }

  void Check() const {
    int sum = 0;
    for (const auto& [pool, size] : node_.sizes) {
      ASSERT_GE(size, node_.asks.at(pool).min) << pool;
      ASSERT_LE(size, node_.asks.at(pool).max) << pool;
      sum += size;
    }
    ASSERT_LE(sum, node_.capacity);
  }

  const AdvisedNode& node() const { return node_; }
  int MaxOf(const std::string& pool) const {
    const auto ask = node_.asks.find(pool);
    return ask == node_.asks.end() ? 0 : ask->second.max;
  }
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

 private:
  std::mt19937 random_;
  AdvisedNode node_;
  PoolSizes advised_;
};

/// `advised` within the bounds of its pools.
PoolSizes Clipped(PoolSizes advised, const PoolAsks& asks) {
  for (auto& [pool, cpus] : advised) {
    cpus = std::clamp(cpus, LeastByAdvice(asks.at(pool)), asks.at(pool).max);
  }
  return advised;
}

TEST(AdviceStreamTest, KeepsBoundsCountsNoMoreThanWhatCanBeHadAndEndsWithItsLease) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    AdviceStream stream(seed);
    const PoolSizes alone = stream.node().sizes;
    AdviceBook book(Advising({"share", "reclaim"}));
    SteadyPoint now = kStart;
    for (int call = 0; call < 20; ++call) {
      for (const AdviceResult& result :
           book.Take(stream.Next(), stream.node(), now).value_or(std::vector<AdviceResult>())) {
        ASSERT_LE(result.applied, stream.MaxOf(result.pool)) << result.pool << ", seed " << seed;
      }
      now += seconds(stream.Below(20));
      ASSERT_NO_FATAL_FAILURE(stream.Plan(book.InForce(now))) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(stream.Check()) << "seed " << seed;
    }
    const PoolSizes in_force = book.InForce(now);
    const PoolSizes clipped = Clipped(in_force, stream.node().asks);
    ASSERT_EQ(stream.Rest(in_force), stream.Rest(clipped)) << "seed " << seed;
    ASSERT_EQ(stream.Rest(book.InForce(now + seconds(30))), alone) << "seed " << seed;
  }
}

TEST(AdviceTest, ThatMakesNoSenseIsRejectedWithASentence) {
  AdviceBook book(Advising({"share"}));
  AdviceCall nameless = Call({});
  nameless.advisor.clear();
  EXPECT_THAT(MessageOf(book.Take(nameless, Node(), kStart).status()),
              HasSubstr("name has 0 letters"));
  EXPECT_THAT(
      MessageOf(book.Take(Call({{"share", 1, ""}, {"share", 2, ""}}), Node(), kStart).status()),
      HasSubstr("it names pool share twice"));
  EXPECT_THAT(MessageOf(book.Take(Call(std::vector<Advice>(1025)), Node(), kStart).status()),
              HasSubstr("at most 1024 are allowed"));
  for (int i = 0; i < 16; ++i) {
    AdviceCall call = Call({});
    call.advisor = "a" + std::to_string(i);
    EXPECT_TRUE(test::IsOk(book.Take(call, Node(), kStart).status()));
  }
  EXPECT_THAT(MessageOf(book.Take(Call({}), Node(), kStart).status()),
              HasSubstr("16 other advisors are active"));
  AdviceCall renewed = Call({{"share", 20, ""}});
  renewed.advisor = "a15";
  EXPECT_TRUE(test::IsOk(book.Take(renewed, Node(), kStart).status()));
}

}  // namespace
}  // namespace qrm::cpu::advice_test
