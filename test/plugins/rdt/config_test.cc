// The rdt section: what is read, and what is rejected with its line.
#include "plugins/rdt/config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"

namespace qrm::rdt::config_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Optional;

StatusOr<RdtConfig> Parse(const std::string& text) {
  const StatusOr<config::Section> section = config::Section::Parse(text, "rdt.yaml");
  EXPECT_TRUE(section.ok()) << MessageOf(section.status());
  return ParseRdtConfig(*section);
}

TEST(RdtConfigTest, ReadsShortAndLongForms) {
  const StatusOr<RdtConfig> config = Parse(R"(
options: {l3: {optional: true}}
partitions:
  p:
    l3Allocation: {all: 60%, "0,2-3": {unified: 0xf0, code: 0-1, data: "2,3"}}
    mbAllocation: [100%, 5000MBps]
    classes:
      gold: {l3Allocation: 10-50%, mbAllocation: {all: [50%], 1: [1MBps]}}
      system/default: {}
)");
  ASSERT_TRUE(config.ok()) << MessageOf(config.status());
  EXPECT_TRUE(config->l3_optional);
  const PartitionConfig& partition = config->partitions.at("p");
  const auto l3 = partition.allocations.l3.value_or(ByCacheId<CacheRequest>());
  EXPECT_EQ(l3.For(1).unified, (CacheShare{.high = 60}));
  EXPECT_EQ(l3.For(2).unified, (CacheShare{.form = CacheShare::Form::kMask, .mask = 0xf0}));
  EXPECT_THAT(l3.For(3).data, Optional(CacheShare{.form = CacheShare::Form::kMask, .mask = 0xc}));
  EXPECT_THAT(partition.classes, ElementsAre(Key("gold"), Key("system/default")));
  const Allocations& gold = partition.classes.at("gold");
  EXPECT_EQ(gold.l3.value_or(ByCacheId<CacheRequest>()).all.unified,
            (CacheShare{.form = CacheShare::Form::kRange, .low = 10, .high = 50}));
  const auto mb = gold.mb.value_or(ByCacheId<BandwidthRequest>());
  EXPECT_THAT(mb.For(0).percent, Optional(50));
  EXPECT_THAT(mb.For(1).mbps, Optional(1));
}

TEST(RdtConfigTest, CacheIdsThatAreNotNamedAreWhole) {
  const StatusOr<RdtConfig> config = Parse("partitions: {p: {l3Allocation: {1: 10%}}}");
  ASSERT_TRUE(config.ok()) << MessageOf(config.status());
  const auto& l3 = config->partitions.at("p").allocations.l3;
  ASSERT_TRUE(l3.has_value());
  EXPECT_EQ(l3.value_or(ByCacheId<CacheRequest>()).For(0).unified, CacheShare());
}

TEST(RdtConfigTest, ClassOfTwoPartitionsIsRejected) {
  const StatusOr<RdtConfig> config =
      Parse("partitions:\n  p: {classes: {c: }}\n  q: {classes: {c: }}");
  EXPECT_EQ(MessageOf(config.status()),
            "cannot read rdt.yaml:3: partitions.q.classes.c is the name of two classes; give each "
            "class a unique name");
}

struct RefusedCase {
  std::string name;
  std::string text;  ///< in a partition
  std::string message;
};
class RdtConfigRejectsTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RdtConfigRejectsTest, NamesLineAndValue) {
  const StatusOr<RdtConfig> config = Parse("partitions:\n  p:\n    " + GetParam().text);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(MessageOf(config.status()),
              AllOf(HasSubstr("rdt.yaml:3: partitions.p."), HasSubstr(GetParam().message)));
}
const RefusedCase kRefused[] = {
    {"UnknownKey", "l4Allocation: 5%", "is not a known key"},
    {"PercentAboveAll", "l3Allocation: 101%", "is '101%', which is not a percentage"},
    {"RangeInPartition", "l3Allocation: 1-50%", "a range, which is not allowed in a partition"},
    {"BackwardRange", "classes: {c: {l3Allocation: 50-10%}}",
     "is '50-10%', which is not a percentage"},
    {"NothingOfACache", "classes: {c: {l3Allocation: 0%}}", "which is none of the cache"},
    {"Holes", "l3Allocation: 0x5", "is '0x5', which is not one block of ones"},
    {"EmptyMask", "l3Allocation: 0x0", "which is not one block of ones"},
    {"TooManyBits", "l3Allocation: 0-64", "which is not a part of a cache"},
    {"Word", "l3Allocation: much", "is 'much', which is not a part of a cache"},
    {"NoUnified", "l3Allocation: {all: {code: 5%, data: 5%}}", "has no 'unified'"},
    {"CodeWithoutData", "l3Allocation: {all: {unified: 5%, code: 5%}}",
     "only one of 'code' and 'data'"},
    {"NoCacheId", "l3Allocation: {x: 5%}", "is not a list of cache ids"},
    {"LargeCacheId", "l3Allocation: {128: 5%}", "is not a list of cache ids"},
    {"CacheIdTwice", "l3Allocation: {0-1: 5%, 1: 6%}", "lists cache id 1 twice"},
    {"UnknownUnit", "mbAllocation: [5GBps]", "has '5GBps', which is not a bandwidth"},
    {"UnitTwice", "mbAllocation: [5%, 6%]", "has '6%' and another value in the same unit"},
    {"NoBandwidth", "mbAllocation: []", "is empty"},
    {"NoClassName", "classes: {-x: {}}", "is not a class name"},
    {"RuntimesOwnKeys", "classes: {c: {kubernetes: {denyPodAnnotation: true}}}",
     "set in `permissions` which namespaces may use the class"},
};
INSTANTIATE_TEST_SUITE_P(Vectors, RdtConfigRejectsTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::rdt::config_test
