// Masks and bandwidths of partitions and classes: examples, and what is rejected.
#include "plugins/rdt/resolve.h"

#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"

namespace qrm::rdt::resolve_test {
namespace {

using testing::HasSubstr;

RdtConfig Config(const std::string& text) {
  const StatusOr<config::Section> section = config::Section::Parse(text, "rdt.yaml");
  const StatusOr<RdtConfig> config = ParseRdtConfig(*section);
  EXPECT_TRUE(config.ok()) << MessageOf(config.status());
  return config.value_or(RdtConfig());
}

RdtInfo Machine(uint64_t mask = 0xfffff) {
  return {.l3 = CacheInfo{.mask = mask, .least_bits = 1, .ids = {0, 8}}, .groups = 16};
}

std::string LinesOf(const std::string& text, const RdtInfo& info, const std::string& name) {
  const auto schemata = Resolve(Config(text), info);
  EXPECT_TRUE(schemata.ok()) << MessageOf(schemata.status());
  return schemata.ok() ? ToString(schemata->at(name)) : "";
}

struct ShareCase {
  std::string name;
  std::string share;  ///< of a class in a partition with 40 % of 20 bits, from bit 12 on
  std::string want;
};
class ResolveShareTest : public testing::TestWithParam<ShareCase> {};

TEST_P(ResolveShareTest, ClassLiesInItsPartition) {
  const std::string text = fmt::format(R"(
partitions:
  exclusive: {{l3Allocation: 60%}}
  shared: {{l3Allocation: 40%, classes: {{c: {{{}}}}}}}
)",
                                       GetParam().share);
  EXPECT_EQ(LinesOf(text, Machine(), "c"),
            "L3:0=" + GetParam().want + ";8=" + GetParam().want + "\n");
}
const ShareCase kShares[] = {
    {"NothingAskedIsAll", "", "ff000"},
    {"All", "l3Allocation: 100%", "ff000"},
    {"Half", "l3Allocation: 50%", "f000"},
    {"UpperHalfRoundsOutwards", "l3Allocation: 50-100%", "f8000"},
    {"UpperHalf", "l3Allocation: 51-100%", "f0000"},
    {"OnePercentIsOneBit", "l3Allocation: 1%", "1000"},
    {"MaskIsShifted", "l3Allocation: '0x3'", "3000"},
    {"BitsAreShifted", "l3Allocation: 0-7", "ff000"},
};
INSTANTIATE_TEST_SUITE_P(Vectors, ResolveShareTest, testing::ValuesIn(kShares),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ResolveTest, PartitionsRoundDownAndTheLargestGetsTheRest) {
  const std::string text = R"(
partitions:
  a: {l3Allocation: 33%, classes: {a: {}}}
  b: {l3Allocation: 33%, classes: {b: {}}}
  c: {l3Allocation: 34%, classes: {c: {}}}
)";
  EXPECT_EQ(LinesOf(text, Machine(0x7ff), "a"), "L3:0=7;8=7\n");
  EXPECT_EQ(LinesOf(text, Machine(0x7ff), "b"), "L3:0=38;8=38\n");
  EXPECT_EQ(LinesOf(text, Machine(0x7ff), "c"), "L3:0=7c0;8=7c0\n");
}

constexpr char kExclusive[] = R"(
partitions:
  own: {exclusive: true, l3Allocation: 60%, classes: {gold: {}}}
  shared: {l3Allocation: 40%, classes: {silver: {}REST}}
)";

std::string Exclusive(const std::string& rest) {
  std::string text = kExclusive;
  return text.replace(text.find("REST"), 4, rest);
}

TEST(ResolveTest, AnExclusivePartitionThatTheRootGroupSharesIsRejectedWithTheLineToAdd) {
  const auto refused = Resolve(Config(Exclusive("")), Machine());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused.status()),
              testing::AllOf(HasSubstr("cannot make partition own exclusive"),
                             HasSubstr("add `system/default: {}` to the classes of partition "
                                       "shared")));
  const auto schemata = Resolve(Config(Exclusive(", system/default: {}")), Machine());
  ASSERT_TRUE(schemata.ok()) << MessageOf(schemata.status());
  EXPECT_FALSE(SharesWithRoot(*schemata, "gold", Machine()));
  EXPECT_TRUE(SharesWithRoot(*schemata, "silver", Machine()));
}

TEST(ResolveTest, WithoutAnotherPartitionTheLineToAddIsAPartition) {
  const auto refused = Resolve(
      Config("partitions: {own: {exclusive: true, l3Allocation: 60%, classes: {gold: {}}}}"),
      Machine());
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("classes: {system/default: {}}}` to the"));
}

TEST(ResolveTest, ClassIsWidenedToTheLeastBitsFromBelow) {
  RdtInfo info = Machine();
  CacheInfo cache = info.l3.value_or(CacheInfo());
  cache.least_bits = 2;
  info.l3 = cache;
  const std::string text =
      "partitions: {p: {l3Allocation: 100%, classes: {low: {l3Allocation: 1%}, high: "
      "{l3Allocation: "
      "100-100%}}}}";
  EXPECT_EQ(LinesOf(text, info, "low"), "L3:0=3;8=3\n");
  EXPECT_EQ(LinesOf(text, info, "high"), "L3:0=c0000;8=c0000\n");
}

TEST(ResolveTest, CodeAndDataCountWhereTheyAreApart) {
  RdtInfo info = Machine(0xff);
  const std::string text = R"(
partitions:
  p:
    l3Allocation: 100%
    classes: {c: {l3Allocation: {all: {unified: 100%, code: 50%, data: 51-100%}, 8: 25%}}}
)";
  EXPECT_EQ(LinesOf(text, info, "c"), "L3:0=ff;8=3\n");
  CacheInfo cache = info.l3.value_or(CacheInfo());
  cache.code_and_data = true;
  info.l3 = cache;
  EXPECT_EQ(LinesOf(text, info, "c"), "L3CODE:0=f;8=3\nL3DATA:0=f0;8=3\n");
}

TEST(ResolveTest, BandwidthIsAPartOfThePartitions) {
  RdtInfo info;
  info.mb = BandwidthInfo{.least_percent = 10, .granularity = 10, .ids = {0, 1}};
  const std::string text =
      "partitions: {p: {mbAllocation: [50%, 2000MBps], classes: {c: {mbAllocation: [30%, "
      "9000MBps]}, d: {mbAllocation: {1: [1%, 7MBps]}}}}}";
  EXPECT_EQ(LinesOf(text, info, "c"), "MB:0=15;1=15\n");
  EXPECT_EQ(LinesOf(text, info, "d"), "MB:0=50;1=10\n");
  info.mb->in_mbps = true;
  EXPECT_EQ(LinesOf(text, info, "c"), "MB:0=2000;1=2000\n");
  EXPECT_EQ(LinesOf(text, info, "d"), "MB:0=2000;1=7\n");
}

TEST(ResolveTest, ClassesBelowTheLeastBandwidthAreNamed) {
  RdtInfo info;
  info.mb = BandwidthInfo{.least_percent = 10, .granularity = 10, .ids = {0}};
  const std::string text =
      "partitions: {p: {mbAllocation: [50%], classes: {a: {mbAllocation: [20%]}, b: {mbAllocation: "
      "[5%]}, c: {mbAllocation: [19%]}}}}";
  EXPECT_EQ(RaisedBandwidth(Config(text), info),
            "mbAllocation of b, c is less than the 10% that this machine gives at least: they get "
            "10%");
  info.mb->least_percent = 1;
  EXPECT_EQ(RaisedBandwidth(Config(text), info), "");
}

TEST(ResolveTest, KernelShowsBandwidthRoundedUp) {
  RdtInfo info;
  info.mb = BandwidthInfo{.least_percent = 10, .granularity = 10, .ids = {0}};
  EXPECT_EQ(AsShown({{"MB", {{0, 15}}}}, info), (Schemata{{"MB", {{0, 20}}}}));
}

TEST(ResolveTest, ResourceThatNoPartitionDividesIsWhole) {
  EXPECT_EQ(LinesOf("partitions: {p: {classes: {c: }}}", Machine(), "c"), "L3:0=fffff;8=fffff\n");
}

TEST(ResolveTest, UnsupportedOptionalResourceIsLeftOut) {
  const std::string text =
      "options: {l2: {optional: true}}\n"
      "partitions: {p: {l2Allocation: 100%, classes: {c: }}}";
  EXPECT_EQ(LinesOf(text, Machine(0xf), "c"), "L3:0=f;8=f\n");
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string message;
};
class ResolveRejectsTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(ResolveRejectsTest, SaysWhatDoesNotFit) {
  const auto schemata = Resolve(Config("partitions: {" + GetParam().text + "}"), Machine());
  ASSERT_FALSE(schemata.ok());
  EXPECT_THAT(MessageOf(schemata.status()), HasSubstr(GetParam().message));
}
const RefusedCase kRefused[] = {
    {"MoreThanAll", "a: {l3Allocation: 60%}, b: {l3Allocation: 50%}", "request 110% in total"},
    {"PercentBesideMask", "a: {l3Allocation: 60%}, b: {l3Allocation: '0x1'}",
     "some partitions use percentages and some masks"},
    {"OverlappingMasks", "a: {l3Allocation: 0-3}, b: {l3Allocation: 3-4}",
     "partition b mask 18 in L3 of cache id 0: it overlaps another partition in bits 8"},
    {"MaskOutsideTheCache", "a: {l3Allocation: 20-21}", "it is outside fffff"},
    {"OnlySomePartitionsAsk", "a: {l3Allocation: 60%}, b: {}", "partitions b request no part"},
    {"NoBitInAll", "a: {l3Allocation: 0%}", "no bits are left for partition a, out of 0"},
    {"NoBitForTheLast", "a: {l3Allocation: 1%}, b: {l3Allocation: 5%}",
     "no bits are left for partition b"},
    {"ClassDoesNotFit", "a: {l3Allocation: 60%, classes: {c: {l3Allocation: 0-12}}}",
     "mask 1fff in L3 of cache id 0: shifted to its partition it is 1fff, which does not fit in "
     "fff"},
    {"ClassWithoutPartition", "a: {classes: {c: {l3Allocation: 50%}}}", "its partition has none"},
    {"MachineLacksIt", "a: {l2Allocation: 50%}", "set options.l2.optional"},
};
INSTANTIATE_TEST_SUITE_P(Vectors, ResolveRejectsTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ResolveTest, BandwidthWithoutTheUnitOfTheMachineIsRejected) {
  RdtInfo info;
  info.mb = BandwidthInfo{.ids = {0}, .in_mbps = true};
  const auto schemata =
      Resolve(Config("partitions: {p: {mbAllocation: [50%], classes: {c: }}}"), info);
  ASSERT_FALSE(schemata.ok());
  EXPECT_THAT(MessageOf(schemata.status()),
              HasSubstr("of p at cache id 0: mbAllocation has no value in MBps"));
}

}  // namespace
}  // namespace qrm::rdt::resolve_test
