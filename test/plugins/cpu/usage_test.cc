// What is reported about pools and CPUs.
#include "plugins/cpu/usage.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::usage_test {
namespace {

using test::Drive;
using testing::Pair;
using testing::UnorderedElementsAre;
using Clip = PoolUsage::Clip;

class UsageTest : public ElasticPlugins {
 protected:
  static CpuUsage UsageNow(const Drive& drive) {
    return dynamic_cast<const UsageSource&>(drive.plugin()).Usage();
  }
};

constexpr char kPools[] = R"(
reserved-cpus: "0"
roles: {own: {numa: any, share-numa-with: ["*"]}}
pools:
  bounded: {size: {max: 4}, roles: [bounded]}
  last: {size: {}, roles: [last], borrow: {idle: all}}
  first: {size: {min: 2}, roles: [first], priority: 1, lend: {to: [last], keep: 1}}
  fixed: {cpus: 1-2}
  default: {size: {min: 1}}
)";

TEST_F(UsageTest, ReportsWhatPoolsAskForAndWhatKeepsItFromThem) {
  Drive drive = Start(kPools);
  Admit(drive, "a", "bounded", 9);
  Admit(drive, "b", "first", 6);
  EXPECT_THAT(UsageNow(drive).pools,
              UnorderedElementsAre(Pair("bounded", PoolUsage{9, Clip::kMax}),
                                   Pair("last", PoolUsage{0, Clip::kNothing}),
                                   Pair("first", PoolUsage{6, Clip::kNothing}),
                                   Pair("default", PoolUsage{1, Clip::kNothing})));
  Admit(drive, "c", "last", 80);
  EXPECT_EQ(UsageNow(drive).pools.at("last"), (PoolUsage{80, Clip::kRoom}));
}

TEST_F(UsageTest, ReportsWhatIsIdleAndWhatIsLent) {
  Drive drive = Start(kPools);
  Admit(drive, "a", "own", 3);
  Admit(drive, "b", "first", 6);
  Admit(drive, "c", "last", 1);
  const CpuUsage usage = UsageNow(drive);
  EXPECT_EQ(usage.idle.Count(), 64 - 1 - 2 - 1 - 3 - 6 - 1);
  EXPECT_FALSE(usage.idle.Intersects(*CpuSet::Parse(drive.Value("a"))));
  EXPECT_EQ(usage.lent.Count(), 5);
  EXPECT_TRUE(usage.lent.IsSubsetOf(Pool(drive, "first")));
}

TEST_F(UsageTest, ReportsWhatBatchWorkCanCountOn) {
  Drive drive = Start(kPools);
  Admit(drive, "b", "first", 6);
  const CpuUsage busy = UsageNow(drive);
  ASSERT_EQ(Pool(drive, "first").Count(), 6);
  EXPECT_DOUBLE_EQ(busy.headroom.at(0) + busy.headroom.at(1), busy.idle.Count());
  Admit(drive, "d", "first", 0.5);
  const CpuUsage half = UsageNow(drive);
  ASSERT_EQ(Pool(drive, "first").Count(), 7);
  EXPECT_DOUBLE_EQ(half.headroom.at(0) + half.headroom.at(1), half.idle.Count() + 0.5);
}

TEST_F(UsageTest, CountsInstancesTogether) {
  constexpr char kTeams[] =
      "{pools: {team: {size: {max: 4}, instances: {by: pod}, roles: [team]}}}";
  Drive drive = Start(kTeams);
  Admit(drive, "a", "team", 3);
  Admit(drive, "b", "team", 6);
  EXPECT_THAT(UsageNow(drive).pools, UnorderedElementsAre(Pair("team", PoolUsage{9, Clip::kMax})));
}

TEST_F(UsageTest, ReportsWhichPoolsWereSetByHand) {
  Drive drive = Start("pools: {a: {cpus: 0-3}, b: {cpus: 4-7}, c: {size: {min: 2}}}");
  ASSERT_TRUE(drive.plugin().SetPools({{"a", {0, 1}}}).ok());
  const CpuUsage usage = UsageNow(drive);
  EXPECT_EQ(usage.sizes.at("a"), (PoolSize{.configured = {0, 1, 2, 3}, .now = {0, 1}}));
  EXPECT_EQ(usage.sizes.at("b").configured, usage.sizes.at("b").now);
  EXPECT_EQ(usage.sizes.at("c").configured, usage.sizes.at("c").now) << "it follows its containers";
}

}  // namespace
}  // namespace qrm::cpu::usage_test
