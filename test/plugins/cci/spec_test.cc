// Specifications as pods and operators write them.
#include "plugins/cci/spec.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/support/is_ok.h"

namespace qrm::cci::spec_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kRequested = 3;

/// "2: exclusive; *4: no-irq?", as the tests compare specifications.
std::string TextOf(const ComputeSpec& spec) {
  std::string text;
  for (const SpecLine& line : spec.lines) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ",
                        line.any > 0 ? fmt::format("*{}", line.any) : ToString(line.named),
                        ToString(line.attributes));
  }
  return text + (spec.container.empty() ? "" : "; all: " + ToString(spec.container));
}

Policies SomePolicies() {
  const auto lines = [](int any, const char* attributes) {
    return SpecLines{{.any = any, .attributes = *ParseAttributes(attributes)}};
  };
  return {{"low-latency", {.lines = lines(2, "exclusive, numa-single"), .container = {}}},
          {"one", {.lines = lines(1, "exclusive"), .container = {}}}};
}

std::string Read(const std::string& text, const Policies& policies = SomePolicies()) {
  const auto spec = ReadPodSpec(text, policies, kRequested);
  return spec.ok() ? TextOf(*spec) : MessageOf(spec.status());
}

struct SpecCase {
  std::string name;
  std::string text;
  std::string want;
};

class SpecTest : public testing::TestWithParam<SpecCase> {};

TEST_P(SpecTest, IsReadFromEachShape) {
  EXPECT_EQ(Read(GetParam().text), GetParam().want);
}

const SpecCase kSpecs[] = {
    {"TheProposalsText",
     "cores: |\n  2\n  6\ncompute_attributes: |\n  exclusive, 2.1Ghz, 1.0 priority\n  exclusive\n",
     "*2: exclusive, freq=2100000kHz, priority=1.000; *6: exclusive"},
    {"Json", R"({"cores": ["5", "20"], "cpu attributes": ["EXCLUSIVE", "exclusive"]})",
     "*5: exclusive; *20: exclusive"},
    {"CpuNumbers", "{cores: ['cpu:2', 'cpu:6-8', 'cpu: 0,4', '10,12']}",
     "2: exclusive; 6-8: exclusive; 0,4: exclusive; 10,12: exclusive"},
    {"AttributesForAll", R"({cores: ["*2", "6-8"], attributes: "exclusive"})",
     "*2: exclusive; 6-8: exclusive"},
    {"NoAttributes", R"({cores: "*4"})", "*4: exclusive"},
    {"NoCores", "{attributes: 'exclusive, numa-single'}", "*3: exclusive, numa-single"},
    {"OneStar", R"({cores: "*"})", "*1: exclusive"},
    {"ANumber", "cores: 2", "*2: exclusive"},
    {"SpacedStar", R"({cores: " * 4 "})", "*4: exclusive"},
    {"OfTheContainer", R"({cores: "*", container_attributes: "sched=rr:5, nice=1?"})",
     "*1: exclusive; all: sched=rr:5, nice=1?"},
    {"APolicy", " low-latency\n", "*2: exclusive, numa-single"},
    {"Nothing", "", "*3: exclusive"},
};
INSTANTIATE_TEST_SUITE_P(Shapes, SpecTest, testing::ValuesIn(kSpecs),
                         [](const auto& param_info) { return param_info.param.name; });

class WrongSpecTest : public testing::TestWithParam<SpecCase> {};

TEST_P(WrongSpecTest, IsAnErrorThatNamesTheLocation) {
  EXPECT_THAT(Read(GetParam().text), HasSubstr(GetParam().want));
}

const SpecCase kWrongSpecs[] = {
    {"UnknownPolicy", "gaming",
     "'gaming' is not a policy of this node (low-latency, one); name one, or write {cores"},
    {"NoDocument", "{cores: [", "write valid YAML"},
    {"BareStar", "cores: *4", "quote a star: {cores: \"*4\"}"},
    {"Anchors", "{cores: &a [*a]}", "it has an alias; write out what it stands for"},
    {"Laughs", "{cores: [&a [x, x], *a]}", "it has an alias; write out what it stands for"},
    {"UnknownKey", "{cores: '2', colour: red}", "colour"},
    {"TwoNames", "{cores: '2', attributes: exclusive, compute_attributes: exclusive}",
     "keep one of them"},
    {"LinesWithoutCores", "{attributes: [exclusive, shared]}",
     "compute_attributes has 2 lines, but cores has 0; write as many, or one for all"},
    {"NoCpu", "{cores: ['2', 'x']}",
     "cores, line 2: column 1: 'x' is neither a number of CPUs nor a set of CPUs"},
    {"NoCpus", "{cores: '0'}",
     "'0' is neither a number of CPUs nor a set of CPUs; write 4 for any"},
    {"NoStars", "{cores: '*0'}", "cores, line 1: column 1: '*0' is neither a number of CPUs"},
    {"ManyStars", "{cores: '*9999'}", "'*9999' is neither a number of CPUs"},
    {"FarCpu", "{cores: 'cpu:8192'}", "'cpu:8192' is neither a number of CPUs nor a set of CPUs"},
    {"CpuTwice", "{cores: ['2-4', 'cpu:4']}", "cores, line 2: CPUs 4 are also in another line"},
    {"UnevenLines", "{cores: ['2', '3', '4'], attributes: [exclusive, exclusive]}",
     "compute_attributes has 2 lines, but cores has 3; write as many, or one for all"},
    {"WrongAttribute", "{cores: '2', attributes: 'exclusive, fast'}",
     "compute_attributes, line 1: column 12: 'fast' is not an attribute"},
    {"ContainerInTwoLines", "{cores: '2', container_attributes: [nice=1, sched=idle]}",
     "container_attributes has 2 lines; write one line, separated by commas"},
    {"WrongContainer", "{cores: '2', container_attributes: 'exclusive'}",
     "container_attributes: column 1: 'exclusive' applies to CPUs"},
    {"Deep", std::string(8000, '['), "cannot read the spec"},
};
INSTANTIATE_TEST_SUITE_P(Mistakes, WrongSpecTest, testing::ValuesIn(kWrongSpecs),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(SpecLimitTest, LongTextsAreRejectedUnread) {
  EXPECT_THAT(Read(std::string(20000, ' ')), StartsWith("cannot read the spec: it has 20000"));
  std::string lines = "{cores: [";
  for (int i = 0; i < 1100; ++i) {
    lines += "'*',";
  }
  EXPECT_THAT(Read(lines + "'*']}"), HasSubstr("cores has 1101 lines; write 1 to 1024"));
}

TEST(SpecDefaultTest, APolicyNamedDefaultIsForPodsThatSayNothing) {
  Policies policies = SomePolicies();
  policies["default"] = policies["one"];
  EXPECT_EQ(Read("", policies), "*1: exclusive");
}

TEST(PolicyFileTest, PoliciesAreReadAsPodsWriteThem) {
  const auto file = config::Section::Parse(
      "policies:\n  quiet: {cores: '*4', compute_attributes: 'exclusive, no-irq'}\n", "cci.yaml");
  const auto policies = ParseConfig(*file);
  ASSERT_TRUE(test::IsOk(policies.status()));
  EXPECT_EQ(TextOf(policies->at("quiet")), "*4: exclusive, no-irq");
}

TEST(PolicyFileTest, AMistakeNamesFileLineAndPolicy) {
  const auto file = config::Section::Parse(
      "policies:\n  good: {cores: '*'}\n  bad: {cores: '*', attributes: loud}\n", "cci.yaml");
  EXPECT_THAT(
      MessageOf(ParseConfig(*file).status()),
      AllOf(HasSubstr("cci.yaml:3: policies.bad"), HasSubstr("'loud' is not an attribute")));
}

}  // namespace
}  // namespace qrm::cci::spec_test
