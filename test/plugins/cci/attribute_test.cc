// The grammar of attributes: each form, and each mistake as a sentence.
#include "plugins/cci/attribute.h"

#include <string>

#include <gmock/gmock.h>

#include "test/support/is_ok.h"

namespace qrm::cci::attribute_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Line {
  std::string name;  // CamelCase: part of the test's name
  std::string text;
  std::string want;  // the attributes again, in their own words; else how the error begins
};

class AttributeTest : public testing::TestWithParam<Line> {};
class WrongAttributeTest : public testing::TestWithParam<Line> {};

TEST_P(AttributeTest, IsReadInOneWayOfWriting) {
  const auto attributes = ParseAttributes(GetParam().text);
  ASSERT_TRUE(test::IsOk(attributes.status()));
  EXPECT_EQ(ToString(*attributes), GetParam().want);
  const auto again = ParseAttributes(ToString(*attributes));
  ASSERT_TRUE(test::IsOk(again.status()));
  EXPECT_EQ(*again, *attributes);
}

TEST_P(WrongAttributeTest, IsAnErrorWithColumnTokenAndCure) {
  const auto attributes = ParseAttributes(GetParam().text);
  ASSERT_FALSE(attributes.ok());
  EXPECT_THAT(MessageOf(attributes.status()), StartsWith(GetParam().want));
}

const Line kLines[] = {
    {"One", "exclusive", "exclusive"},
    {"Several", " Exclusive ,SMT_sibling_required", "exclusive, smt-sibling-required"},
    {"Wish", "no-irq ?, exclusive", "no-irq?, exclusive"},
    {"TheProposalsFrequency", "2.1Ghz", "freq=2100000kHz"},
    {"TheProposalsPriority", "1.0 priority", "priority=1.000"},
    {"Floor", "freq = 2100 MHz", "freq=2100000kHz"},
    {"Bounds", "freq=2GHz-3.05GHz", "freq=2000000kHz-3050000kHz"},
    {"Ceiling", "freq-max=800000khz", "freq-max=800000kHz"},
    {"TrailingZeros", "freq=2.10000000GHz", "freq=2100000kHz"},
    {"Priority", "priority=0.7", "priority=0.700"},
    {"Nodes", "numa=0-1,NUMA-single", "numa=0-1, numa-single"},
    {"CoreType", "core-type=Efficiency", "core-type=efficiency"},
    {"Memory", "mem=bind", "mem=bind"},
    {"Governor", "governor=performance,epp=balance_power",
     "governor=performance, epp=balance_power"},
    {"Latency", "idle-latency=20", "idle-latency=20us"},
    {"LatencyWithUnit", "idle-latency=20us?", "idle-latency=20us?"},
    {"NoIdle", "no-idle", "no-idle"},
    {"SomebodysOwn", "vendor/x=1?", "vendor/x=1?"},
};
INSTANTIATE_TEST_SUITE_P(Grammar, AttributeTest, testing::ValuesIn(kLines),
                         [](const auto& param_info) { return param_info.param.name; });

class ContainerAttributeTest : public testing::TestWithParam<Line> {};

TEST_P(ContainerAttributeTest, IsReadInOneWayOfWritingOrIsAnError) {
  const auto attributes = ParseAttributes(GetParam().text, AttributeScope::kContainer);
  EXPECT_THAT(attributes.ok() ? ToString(*attributes) : MessageOf(attributes.status()),
              StartsWith(GetParam().want));
}

const Line kContainerLines[] = {
    {"RealTime", "sched=FIFO:10", "sched=fifo:10"},
    {"LeadingZeros", "sched=rr:007", "sched=rr:7"},
    {"WithoutPriority", "Sched=batch , nice=-5?", "sched=batch, nice=-5?"},
    {"NoPriority", "sched=fifo",
     "column 1: 'sched=fifo' has an impossible value; write sched=fifo"},
    {"HighPriority", "sched=rr:100", "column 1: 'sched=rr:100' has an impossible value"},
    {"PriorityOfIdle", "sched=idle:1", "column 1: 'sched=idle:1' has an impossible value"},
    {"AsTheKernelSaysIt", "sched=fifo 10", "column 1: 'sched=fifo 10' has an impossible value"},
    {"Nicest", "nice=20", "column 1: 'nice=20' has an impossible value; write nice=5"},
    {"Twice", "nice=1,nice=2", "column 8: 'nice=2' is listed twice"},
    {"OfCpus", "no-irq", "column 1: 'no-irq' applies to CPUs; write it in compute_attributes"},
    {"Unknown", "ionice=3", "column 1: 'ionice=3' is not an attribute; did you mean nice?"},
};
INSTANTIATE_TEST_SUITE_P(Grammar, ContainerAttributeTest, testing::ValuesIn(kContainerLines),
                         [](const auto& param_info) { return param_info.param.name; });

const Line kWrongLines[] = {
    {"Empty", "", "column 1: '' is not an attribute; write an attribute between commas"},
    {"EmptyItem", "exclusive,,no-irq", "column 11: '' is not an attribute"},
    {"OnlyAWish", "?", "column 1: '?' is not an attribute; write one of exclusive, shared"},
    {"Unknown", "exclusive, no-irqs",
     "column 12: 'no-irqs' is not an attribute; did you mean no-irq?"},
    {"Twice", "no-irq, NO_IRQ", "column 9: 'NO_IRQ' is listed twice; write it once"},
    {"TwiceByItsOldName", "2.1GHz, freq=3GHz", "column 9: 'freq=3GHz' is listed twice"},
    {"ExclusiveAndShared", "exclusive, shared",
     "column 12: 'shared' excludes 'exclusive'; write one of exclusive and shared"},
    {"TwoSiblingWords", "smt-sibling-denied,smt-sibling-required",
     "column 20: 'smt-sibling-required' excludes 'smt-sibling-denied'"},
    {"TwoLatencies", "no-idle,idle-latency=5", "column 9: 'idle-latency=5' excludes"},
    {"RoundedFrequency", "freq=2.1234567GHz",
     "column 1: 'freq=2.1234567GHz' has an impossible value"},
    {"NoUnit", "freq=2", "column 1: 'freq=2' has an impossible value; write freq=2.1GHz"},
    {"BoundsTheWrongWay", "freq=3GHz-2GHz", "column 1: 'freq=3GHz-2GHz' has an impossible value"},
    {"NoValue", "numa", "column 1: 'numa' has no value; write numa=0"},
    {"AValueTooMany", "exclusive=1", "column 1: 'exclusive=1' takes no value; write exclusive"},
    {"HighPriority", "priority=1.1", "column 1: 'priority=1.1' has an impossible value"},
    {"NegativeLatency", "idle-latency=-1", "column 1: 'idle-latency=-1' has an impossible value"},
    {"NoGovernor", "governor=../x", "column 1: 'governor=../x' has an impossible value"},
    {"OfTheContainer", "exclusive, nice=5",
     "column 12: 'nice=5' applies to the whole container; write it in container_attributes"},
    {"HugeFrequency", "freq=99999999999999999999GHz", "column 1: 'freq=9999"},
};
INSTANTIATE_TEST_SUITE_P(Grammar, WrongAttributeTest, testing::ValuesIn(kWrongLines),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(AttributeTextTest, ForeignTextIsCutInMessages) {
  const auto attributes = ParseAttributes(std::string(10000, 'x') + "\n\x1b[31m");
  EXPECT_LT(MessageOf(attributes.status()).size(), 1000u);
  EXPECT_THAT(MessageOf(attributes.status()), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace qrm::cci::attribute_test
