// Errors about a wrong configuration name file, line, key, value and allowed values.
#include "api/base/section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/id_set.h"

namespace qrm::config::section_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Section Read(const std::string& text) {
  StatusOr<Section> section = Section::Parse(text, "cpu.yaml");
  EXPECT_TRUE(section.ok()) << section.status();
  return *std::move(section);
}

TEST(SectionTest, ReadsEveryKindOfValue) {
  const Section section = Read(
      "text: hello\nflag: true\nnumber: 25000\nsize: 500Mi\ncpus: 0-1,40-41\nwords: [a, b]\n"
      "map: {x: {y: 1}}\nitems:\n  - {name: eth0}\n");
  EXPECT_EQ(*section.Text("text", ""), "hello");
  EXPECT_TRUE(*section.Flag("flag", false));
  EXPECT_EQ(*section.Number("number", 0), 25000u);
  EXPECT_EQ(*section.Bytes("size", 0), 524288000u);
  EXPECT_EQ(*section.Parsed<CpuSet>("cpus", "CPU list", "0-3,8"), (CpuSet{0, 1, 40, 41}));
  EXPECT_EQ(*section.Choice("text", 0, {"bye", "hello"}), 1u);
  EXPECT_THAT(*section.Words("words"), ElementsAre("a", "b"));
  const auto children = *section.Children("map");
  ASSERT_EQ(children.size(), 1u);
  EXPECT_EQ(children[0].first, "x");
  EXPECT_EQ(*children[0].second.Number("y", 0), 1u);
  EXPECT_EQ(*section.Items("items")->front().Text("name", ""), "eth0");
}

TEST(SectionTest, GivesFallbacksForMissingKeys) {
  const Section section = Read("");
  EXPECT_EQ(*section.Text("text", "fallback"), "fallback");
  EXPECT_TRUE(*section.Flag("flag", true));
  EXPECT_EQ(*section.Choice("text", 1, {"bye", "hello"}), 1u);
  EXPECT_EQ(*section.Number("number", 7), 7u);
  EXPECT_EQ(*section.Bytes("size", 9), 9u);
  EXPECT_TRUE(section.Parsed<CpuSet>("cpus", "CPU list", "0-3,8")->Empty());
  EXPECT_TRUE(section.Words("words")->empty());
  EXPECT_TRUE(section.Children("map")->empty());
  EXPECT_TRUE(section.Items("items")->empty());
}

TEST(SectionTest, RejectsNamesThatATerminalCannotShow) {
  const Section section = Read("pools: {\xff\xff: {}}");
  EXPECT_EQ(MessageOf(section.Children("pools").status()),
            "cannot read cpu.yaml:1: pools has the name '\\xff\\xff' with characters that no "
            "terminal shows; choose "
            "another name");
}

TEST(SectionTest, RejectsUnknownKeyWithLocationAndKnownOnes) {
  const Status status = Read("a: 1\npoools: 2\n").AllowKeys({"a", "pools"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      MessageOf(status),
      "cannot read cpu.yaml:2: poools (with value '2') is not a known key; the keys here are a, "
      "pools");
}

TEST(SectionTest, AcceptsKeysOfOtherSections) {
  const Section section = Read("a: 1\nb: 2\n").Without({"b"});
  EXPECT_TRUE(section.AllowKeys({"a"}).ok());
  EXPECT_THAT(MessageOf(section.AllowKeys({"c"})), HasSubstr("the keys here are c, b"));
}

TEST(SectionTest, RejectsKeyGivenTwice) {
  EXPECT_THAT(MessageOf(Section::Parse("a: 1\na: 2\n", "cpu.yaml").status()),
              HasSubstr("cpu.yaml:2: a occurs twice; keep one of them"));
  EXPECT_THAT(MessageOf(Section::Parse("a: [{b: 1,\n b: 2}]\n", "cpu.yaml").status()),
              HasSubstr("cpu.yaml:2: b occurs twice"));
}

TEST(SectionTest, WritesOutAliasesInOneLine) {
  const std::string line = Read("a: &x [1, {b: \"2\"}]\nc: *x\nd: ~\n").OneLine();
  EXPECT_EQ(line, "{a: [1, {b: 2}], c: [1, {b: 2}], d: ~}");
  EXPECT_TRUE(Section::Parse(line, "node", kForeignYaml).ok());
}

TEST(SectionTest, ReadsNoMoreOfAFileThanItMayHave) {
  EXPECT_EQ(MessageOf(Section::Load("/dev/zero").status()),
            "cannot read /dev/zero: it has more than 2097152 bytes; write less");
}

TEST(SectionTest, NamesTheLineThatATabIndents) {
  EXPECT_EQ(MessageOf(Section::Parse("a:\n  b: 1\n\tc: 2\n", "cpu.yaml").status()),
            "cannot read cpu.yaml:3: the line is indented by a tab; indent by spaces");
}

TEST(SectionTest, SaysHowSizesAreWritten) {
  EXPECT_EQ(
      MessageOf(Read("memory: 1GB\n").Bytes("memory", 0).status()),
      "cannot read cpu.yaml:1: memory is '1GB', which is not a size; write bytes, or a size such "
      "as 512Mi or 1G");
}

TEST(SectionTest, NamesThePathOfNestedKey) {
  const Section section = Read("pools:\n  online:\n    cpus: zero\n");
  EXPECT_EQ(
      MessageOf(section.Children("pools")
                    ->front()
                    .second.Parsed<CpuSet>("cpus", "CPU list", "0-3,8")
                    .status()),
      "cannot read cpu.yaml:3: pools.online.cpus is 'zero', which is not a CPU list; write one "
      "such as 0-3,8");
}

struct WrongCase {
  std::string name;
  std::string text;
  std::string want;
};
class WrongValueTest : public testing::TestWithParam<WrongCase> {};

TEST_P(WrongValueTest, IsRejectedWithLineAndValue) {
  const Section section = Read(GetParam().text);
  const Status status[] = {
      section.Flag("flag", false).status(), section.Number("number", 0).status(),
      section.Bytes("size", 0).status(),    section.Choice("word", 0, {"one", "two"}).status(),
      section.Words("words").status(),      section.Children("map").status(),
      section.Items("items").status()};
  std::string messages;
  for (const Status& each : status) {
    messages += MessageOf(each);
  }
  EXPECT_THAT(messages, HasSubstr("cpu.yaml:1"));
  EXPECT_THAT(messages, HasSubstr(GetParam().want));
}

const WrongCase kWrong[] = {
    {"Flag", "flag: yes please", "true or false"},
    {"NegativeNumber", "number: -1", "'-1'"},
    {"FractionalNumber", "number: 1.5", "'1.5'"},
    {"HugeNumber", "number: 18446744073709551616", "2^53"},
    {"Size", "size: 5 apples", "512Mi"},
    {"NegativeSize", "size: -5Mi", "512Mi"},
    {"Word", "word: three", "one or two"},
    {"WordIsMap", "word: {}", "not a plain value"},
    {"WordsIsScalar", "words: a", "not a list"},
    {"MapIsScalar", "map: a", "map is not a mapping"},
    {"ItemsIsMap", "items: {}", "not a list"},
    {"ItemIsScalar", "items: [a]", "items[0] is not a mapping"},
};
INSTANTIATE_TEST_SUITE_P(Values, WrongValueTest, testing::ValuesIn(kWrong),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(SectionTest, TakesAWordForAListOfOne) {
  const Section section = *Section::Parse("one: a\nmore: [a, b]", "cpu.yaml");
  EXPECT_EQ(*section.WordOrWords("one"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(*section.WordOrWords("more"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(section.WordOrWords("none")->empty());
}

TEST(SectionTest, ReportsWhereAMappingBegins) {
  const Section section = *Section::Parse("rules:\n- {a: 1}\n- b: 2\n  c: 3\n", "cpu.yaml");
  const auto items = section.Items("rules");
  EXPECT_EQ((*items)[0].Place(), "cpu.yaml:2");
  EXPECT_EQ((*items)[1].Place(), "cpu.yaml:3");
}

TEST(SectionTest, RejectsTextThatIsNotYaml) {
  const Status status = Section::Parse("a: [1", "cpu.yaml").status();
  EXPECT_THAT(MessageOf(status), HasSubstr("cannot read cpu.yaml:"));
}

TEST(SectionTest, RejectsMissingFile) {
  EXPECT_EQ(Section::Load("/nonexistent/cpu.yaml").status().code(), StatusCode::kNotFound);
}

TEST(ParseBytesTest, ReadsKubernetesSizes) {
  EXPECT_EQ(*ParseBytes("524288000"), 524288000u);
  EXPECT_EQ(*ParseBytes("1.5Gi"), 1610612736u);
  EXPECT_EQ(*ParseBytes("20G"), 20000000000u);
  EXPECT_FALSE(ParseBytes("").ok());
  EXPECT_FALSE(ParseBytes("Mi").ok());
  EXPECT_FALSE(ParseBytes("1e300").ok());
  EXPECT_FALSE(ParseBytes("nan").ok());
}

}  // namespace
}  // namespace qrm::config::section_test
