// The configuration of classes of CPUs.
#include "plugins/kernel/tuning_profile.h"

#include <string>

#include <gmock/gmock.h>

#include "api/base/section.h"
#include "test/support/is_ok.h"

namespace qrm::kernel::tuning_profile_test {
namespace {

using Meaning = Frequency::Meaning;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::TestWithParam;

StatusOr<TuningProfiles> Read(const std::string& classes) {
  return ParseTuningProfiles(*config::Section::Parse("classes: {" + classes + "}", "cpu.yaml"));
}

TEST(TuningProfileTest, ReadsAllThatAClassCanSet) {
  const auto classes = Read(
      "fast: {freq: {min: base, max: turbo}, governor: performance, epp: balance_performance, "
      "idle-latency-us: 10, uncore: {min: max}}, slow: {freq: {min: min, max: 1.2GHz}}, "
      "quiet: {irq: none}, sink: {irq: sink}, back: {qos: {cpu-scheduling: batch, oom: first}}");
  ASSERT_TRUE(test::IsOk(classes.status()));
  EXPECT_EQ(classes->at("fast"), (TuningProfile{.frequency = {{Meaning::kBase}, {Meaning::kMost}},
                                                .governor = "performance",
                                                .preference = "balance_performance",
                                                .wake_up_us = 10,
                                                .uncore = {.least = {Meaning::kMost}}}));
  EXPECT_EQ(classes->at("slow"),
            (TuningProfile{.frequency = {{Meaning::kLeast}, {Meaning::kNumber, 1200000}}}));
  EXPECT_EQ(classes->at("quiet"), TuningProfile{.irq = IrqRule::kNone});
  EXPECT_EQ(classes->at("back"),
            (TuningProfile{.qos = {{"cpu-scheduling", "batch"}, {"oom", "first"}}}));
  EXPECT_EQ(classes->at("sink"), TuningProfile{.irq = IrqRule::kSink});
}

TEST(TuningProfileTest, HasNoneWithoutTheKey) {
  EXPECT_THAT(*ParseTuningProfiles(*config::Section::Parse("", "cpu.yaml")), IsEmpty());
}

struct Refused {
  const char* name;
  const char* classes;
  const char* says;
};

class RejectedClassTest : public TestWithParam<Refused> {};

TEST_P(RejectedClassTest, IsRejectedWithTheCure) {
  const auto classes = Read(GetParam().classes);
  EXPECT_EQ(classes.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(classes.status()), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, RejectedClassTest,
    testing::Values(
        Refused{"NoFrequency", "a: {freq: {min: fast}}",
                "classes.a.freq.min is 'fast', which is not a frequency; write one such as 2.1GHz"},
        Refused{"NoUnit", "a: {freq: {min: 2100000}}", "is '2100000', which is not a frequency"},
        Refused{"Reversed", "a: {freq: {min: 2GHz, max: 1GHz}}", "max is below min"},
        Refused{"ReversedWords", "a: {freq: {min: turbo, max: base}}", "max is below min"},
        Refused{"BaseOfAnUncore", "a: {uncore: {min: base}}", "which an uncore does not have"},
        Refused{"NoWord", "a: {governor: 'a b'}", "not a name that the kernel uses"},
        Refused{"LongSleep", "a: {idle-latency-us: 1000001}", "more than a second"},
        Refused{"NoIrqRule", "a: {irq: few}", "any or none or sink"},
        Refused{"NoQosClass", "a: {qos: {oom: ''}}", "classes.a.qos.oom has no class"},
        Refused{"Nothing", "a: {}", "classes.a sets nothing"},
        Refused{"UnknownKey", "a: {frequency: 1GHz}", "frequency"}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace qrm::kernel::tuning_profile_test
