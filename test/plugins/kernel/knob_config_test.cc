#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/kernel/knob.h"
#include "test/support/is_ok.h"

namespace qrm::kernel::knob_config_test {
namespace {

using test::IsOk;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const KnobType& TypeOf(const std::string& name) {
  for (const KnobType& type : KnobTypes()) {
    if (type.name == name) {
      return type;
    }
  }
  return KnobTypes().front();
}

StatusOr<std::map<std::string, KnobValues>> Parse(const std::string& type,
                                                  const std::string& text) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Parse(text, "knobs.yaml"));
  return ParseKnobClasses(section, TypeOf(type));
}

TEST(KnobConfigTest, ReadsClassesByTheTableOfTheirType) {
  const auto memory = Parse("memory", "classes: {batch: {memory.high: 512Mi}, free: {}}");
  ASSERT_TRUE(IsOk(memory.status()));
  EXPECT_THAT(*memory, ElementsAre(Pair("batch", ElementsAre(Pair("memory.high", "536870912"))),
                                   Pair("free", testing::IsEmpty())));
  const auto cpu = Parse("cpu-scheduling", "classes: {low: {nice: 19, policy: batch}}");
  ASSERT_TRUE(IsOk(cpu.status()));
  EXPECT_THAT(cpu->at("low"), UnorderedElementsAre(Pair("nice", "19"), Pair("policy", "batch")));
}

struct ShownCase {
  std::string name;
  std::string type;
  std::string knob;
  std::string text;
  std::string shown;
};
class KnobValueTest : public testing::TestWithParam<ShownCase> {};

TEST_P(KnobValueTest, IsWhatTheKernelShows) {
  const auto classes =
      Parse(GetParam().type, "classes: {a: {" + GetParam().knob + ": " + GetParam().text + "}}");
  ASSERT_TRUE(IsOk(classes.status()));
  EXPECT_EQ(classes->at("a").at(GetParam().knob), GetParam().shown);
}

const ShownCase kShown[] = {
    {"WholePages", "memory", "memory.high", "4097", "4096"},
    {"NoLimit", "memory", "memory.swap.max", "max", "max"},
    {"NoSwap", "memory", "memory.swap.max", "0", "0"},
    {"PercentWithTwoDecimals", "cpu-scheduling", "cpu.uclamp.max", "12.5", "12.50"},
    {"AllOfAProcessor", "cpu-scheduling", "cpu.uclamp.max", "100", "max"},
    {"RealTimePriority", "cpu-scheduling", "policy", "fifo 10", "fifo 10"},
    {"ZerosBeforeAPriority", "cpu-scheduling", "policy", "rr 007", "rr 7"},
    {"NegativeScore", "oom", "oom_score_adj", "-500", "-500"},
    {"ClassOfTc", "network", "net_cls.classid", "'10:1'", "1048577"},
    {"ClassAsANumber", "network", "net_cls.classid", "1048577", "1048577"},
    {"LatencyOfDevices", "io-latency", "io.latency", "{'8:0': 10000}", "8:0 target=10000"},
    {"PriorityOfInterfaces", "network", "net_prio.ifpriomap", "{eth0: 5, lo: 1}", "eth0 5\nlo 1"},
};
INSTANTIATE_TEST_SUITE_P(Values, KnobValueTest, testing::ValuesIn(kShown),
                         [](const auto& param_info) { return param_info.param.name; });

struct BadKnob {
  std::string name;
  std::string type;
  std::string text;
  std::string says;
};
class BadKnobConfigTest : public testing::TestWithParam<BadKnob> {};

TEST_P(BadKnobConfigTest, IsRejectedWithTheLine) {
  const Status refused = Parse(GetParam().type, GetParam().text).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), AllOf(HasSubstr("knobs.yaml:"), HasSubstr(GetParam().says)));
}

const BadKnob kBad[] = {
    {"OtherTop", "memory", "Classes: {}", "is not a known key"},
    {"KnobOfAnotherType", "oom", "classes: {a: {nice: 5}}",
     "choose from memory.oom.group and oom_score_adj"},
    {"NoClassName", "oom", "classes: {../a: {}}", "is not a class name"},
    {"TwoClassesOfAName", "oom", "classes: {a: {}, a: {}}", "twice"},
    {"KnobTwice", "cpu-scheduling", "classes: {a: {nice: 1, nice: 2}}", "occurs twice"},
    {"NiceBeyond", "cpu-scheduling", "classes: {a: {nice: 20}}", "from -20 to 19"},
    {"NoPolicy", "cpu-scheduling", "classes: {a: {policy: fifo}}", "with a priority from 1 to 99"},
    {"PercentBeyond", "cpu-scheduling", "classes: {a: {cpu.uclamp.min: 101}}", "from 0 to 100"},
    {"NoQuantity", "memory", "classes: {a: {memory.low: lots}}", "a quantity up to"},
    {"MaxWhereThereIsNone", "memory", "classes: {a: {memory.low: max}}", "such as 512Mi"},
    {"NoClassOfTc", "network", "classes: {a: {net_cls.classid: '10:x'}}", "such as 10:1"},
    {"NoDevice", "io-latency", "classes: {a: {io.latency: {sda: 5}}}", "is not a block device"},
    {"NoInterfaces", "network", "classes: {a: {net_prio.ifpriomap: 5}}", "net_prio.ifpriomap"},
    {"ScoreBeyond", "oom", "classes: {a: {oom_score_adj: 1001}}", "from -1000 to 1000"},
};
INSTANTIATE_TEST_SUITE_P(Configs, BadKnobConfigTest, testing::ValuesIn(kBad),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::kernel::knob_config_test
