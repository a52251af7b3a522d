// YAML within bounds: the uses of aliases, and the limits.
#include "api/base/foreign_yaml.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "api/base/rejected.h"

namespace qrm::config::foreign_yaml_test {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text, const YamlBounds& bounds = {}) {
  const Status status = ParseYamlDocuments(text, "f.yaml", bounds).status();
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument) << status;
  return MessageOf(status);
}

/// Lists that each contain the previous one eight times.
std::string Laughs(int levels) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < levels; ++i) {
    text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  }
  return text;
}

TEST(ParseYamlTest, ReadsAliasesOfOperators) {
  const StatusOr<YAML::Node> root =
      ParseYaml("a: &x [1, 2]\nb: *x\nc: &y {k: *x}\nd: [*y, *y]\n", "f.yaml");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ((*root)["d"][1]["k"][1].Scalar(), "2");
}

TEST(ParseYamlTest, ReadsTheFirstDocumentAndNothingAsNull) {
  EXPECT_EQ((*ParseYaml("a: 1\n---\na: 2\n", "f"))["a"].Scalar(), "1");
  EXPECT_EQ(ParseYamlDocuments("a: 1\n---\na: 2\n", "f")->size(), 2u);
  for (const char* text : {"", "# nothing\n", "---\n"}) {
    EXPECT_TRUE(ParseYaml(text, "f")->IsNull()) << text;
  }
}

TEST(ParseYamlTest, RejectsAnchorsThatReferToThemselves) {
  for (const char* text : {"&a [*a]", "a: &a {b: [*a]}", "&a {*a : 1}", "a: &a [&b [*a], *b]"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("f.yaml:1: an anchor refers to itself")) << text;
  }
}

TEST(ParseYamlTest, CountsNodesWithAliasesWrittenOut) {
  EXPECT_EQ(ErrorOf(Laughs(4)), "");
  EXPECT_THAT(ErrorOf(Laughs(9)), HasSubstr("it has more than 100000 nodes, aliases written out"));
  EXPECT_EQ(ErrorOf("[1, 2, 3]", {.nodes = 4}), "");
  EXPECT_THAT(ErrorOf("- 1\n- 2\n- 3\n", {.nodes = 3}), HasSubstr("more than 3 nodes"));
  EXPECT_THAT(ErrorOf("a: &a [1]\nb: *a\n", {.nodes = 6}), HasSubstr("f.yaml:2: "));
  EXPECT_EQ(ErrorOf("a: &a [1]\nb: *a\n", {.nodes = 7}), "");
}

TEST(ParseYamlTest, CountsLevelsWithAliasesWrittenOut) {
  EXPECT_EQ(ErrorOf("[{a: [1]}]", {.depth = 3}), "");
  EXPECT_THAT(ErrorOf("[{a: [[]]}]", {.depth = 3}), HasSubstr("more than 3 levels"));
  EXPECT_EQ(ErrorOf("a: &a [[1]]\nb: [*a]\n", {.depth = 4}), "");
  EXPECT_THAT(ErrorOf("a: &a [[1]]\nb: [*a]\n", {.depth = 3}), HasSubstr("more than 3 levels"));
  for (const char* opening : {"[", "{", "- ", "? ", "a: {"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) {
      text += opening;
    }
    EXPECT_NE(ErrorOf(text), "") << opening;
  }
}

TEST(ParseYamlTest, CountsBytesWithAliasesWrittenOut) {
  EXPECT_THAT(ErrorOf(std::string(20, ' '), {.bytes = 19}), HasSubstr("more than 19 bytes"));
  EXPECT_EQ(ErrorOf("[&a 0123456789, *a]", {.bytes = 20}), "");
  EXPECT_THAT(ErrorOf("[&a 0123456789, *a, *a]", {.bytes = 25}), HasSubstr("more than 25 bytes"));
}

// They cost 200 bytes each before the first of them is known.
TEST(ParseYamlTest, CountsBracketsAndCommasBeforeTheLibraryReadsThem) {
  const YamlBounds bounds{.nodes = 10};
  EXPECT_EQ(ErrorOf("[a, b, c, d, e, f, g, h, i]", bounds), "");
  for (const char mark : {'[', ']', '{', '}', ','}) {
    EXPECT_EQ(ErrorOf(std::string(11, mark), bounds),
              "cannot read f.yaml: it has more than 10 brackets and commas; write less");
  }
}

TEST(ParseYamlTest, EndsWhenItTakesTooLong) {
  EXPECT_THAT(ErrorOf("[1, 2]", {.time = std::chrono::milliseconds(-1)}),
              HasSubstr("ms to read; write less"));
}

TEST(ParseYamlTest, RejectsAliasesOfOthers) {
  const uint64_t rejected = RejectedSoFar(Rejected::kYaml);
  EXPECT_EQ(ErrorOf("a: &a 1\nb: *a\n", kForeignYaml),
            "cannot read f.yaml:2: it has an alias; write out what it stands for");
  EXPECT_EQ(ErrorOf("a: &a 1\nb: 2\n", kForeignYaml), "");
  EXPECT_EQ(RejectedSoFar(Rejected::kYaml), rejected + 1);
}

TEST(ParseYamlTest, NamesTheLineOfAMistake) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [\n"), HasSubstr("cannot read f.yaml:"));
  EXPECT_THAT(ErrorOf("a: 1\nb: *c\n"), HasSubstr("f.yaml:2: "));
  EXPECT_THAT(ErrorOf("a: ]\n"), HasSubstr("write valid YAML"));
  EXPECT_EQ(ErrorOf("\n, - -"), "cannot read f.yaml:2: no value begins here; write valid YAML");
}

}  // namespace
}  // namespace qrm::config::foreign_yaml_test
