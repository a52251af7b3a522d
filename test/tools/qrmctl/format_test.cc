// Tables, sheets and numbers for people; documents for machines.
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "api/proto/qrm/v1/control.pb.h"
#include "tools/qrmctl/colours.h"
#include "tools/qrmctl/document.h"
#include "tools/qrmctl/explain_text.h"
#include "tools/qrmctl/json_path.h"
#include "tools/qrmctl/table.h"
#include "tools/qrmctl/text.h"

namespace qrm::manager::cli::format_test {
namespace {

TEST(TextTest, AgesHaveTwoUnitsAtMost) {
  EXPECT_EQ(AgeText(-1), "never");
  EXPECT_EQ(AgeText(0), "0s");
  EXPECT_EQ(AgeText(59.9), "59s");
  EXPECT_EQ(AgeText(60), "1m");
  EXPECT_EQ(AgeText(3599), "59m59s");
  EXPECT_EQ(AgeText(3600), "1h");
  EXPECT_EQ(AgeText(90061), "1d1h");
}

TEST(ColoursTest, MarkHeadersAndStatesOfStreamsThatHaveThem) {
  Table table({"RESOURCE", "STATE"});
  table.Add({"cpu", "live"});
  table.Add({"away", "away"});
  std::ostringstream plain;
  table.Print(plain);
  EXPECT_EQ(plain.str(), "RESOURCE   STATE\ncpu        live\naway       away\n");
  std::ostringstream terminal;
  UseColours(terminal);
  std::ostringstream rendered;
  rendered.copyfmt(terminal);
  table.Print(rendered);
  EXPECT_EQ(rendered.str(),
            "\x1b[1mRESOURCE\x1b[0m   \x1b[1mSTATE\x1b[0m\n"
            "cpu        \x1b[32mlive\x1b[0m\n"
            "away       \x1b[31maway\x1b[0m\n");
}

TEST(TextTest, NumbersThatFitNoIntegerAreShownAllTheSame) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(AgeText(kInfinity), "never");
  EXPECT_EQ(AgeText(std::numeric_limits<double>::quiet_NaN()), "never");
  EXPECT_EQ(AmountOf("memory", kInfinity), "inf");
}

TEST(DocumentTest, FormatCharactersAreShownAndMeanTheSameToMachines) {
  const std::string foreign = "gpj.\u202egnp\u009b";
  const Document document = {{foreign, foreign}};
  const auto printed = [&](const OutputFormat& format) {
    std::ostringstream out;
    Print(document, format, out);
    return out.str();
  };
  const std::string json = printed(OutputFormat::kJson);
  EXPECT_EQ(json, "{\n  \"gpj.\\u202egnp\\u009b\": \"gpj.\\u202egnp\\u009b\"\n}\n");
  EXPECT_EQ(Document::parse(json), document);
  const std::string yaml = printed(OutputFormat::kYaml);
  EXPECT_EQ(yaml, "\"gpj.\\u202egnp\\x9b\": \"gpj.\\u202egnp\\x9b\"\n");
  EXPECT_EQ(YAML::Load(yaml)[foreign].as<std::string>(), foreign);
}

TEST(TextTest, BytesArePowersOf1024WithOneDigit) {
  EXPECT_EQ(BytesText(0), "0");
  EXPECT_EQ(BytesText(1023), "1023");
  EXPECT_EQ(BytesText(1536), "1.5Ki");
  EXPECT_EQ(BytesText(uint64_t{2} << 30), "2Gi");
  EXPECT_EQ(BytesText(UINT64_MAX), "16777216Ti");
}

TEST(TextTest, AmountsHaveNoTrailingZeros) {
  EXPECT_EQ(AmountText(2), "2");
  EXPECT_EQ(AmountText(0.5), "0.5");
  EXPECT_EQ(AmountText(100), "100");
  EXPECT_EQ(AmountOf("hugepages-2Mi", 2097152), "2Mi");
  EXPECT_EQ(AmountOf("nic", 2097152), "2097152");
}

TEST(TableTest, ColumnsAreAlignedAndTheLastIsNotPadded) {
  Table table({"NAME", "X"});
  table.Add({"a-long-name", ""});
  table.Add({"b", "yes"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "NAME          X\na-long-name   -\nb             yes\n");
}

TEST(SheetTest, ValuesAreAligned) {
  Sheet sheet;
  sheet.Add("A", "1");
  sheet.Add("Long", "2");
  std::ostringstream out;
  sheet.Print(out, 2);
  EXPECT_EQ(out.str(), "  A:      1\n  Long:   2\n");
}

TEST(TableTest, RowsAreSortedByAColumnAndNumbersInTextsAsNumbers) {
  Table table({"POD", "CPUS"});
  table.Add({"web-10", "3"});
  table.Add({"web-2", "12"});
  table.Add({"db", "7"});
  ASSERT_TRUE(table.SortBy("pod").ok());
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "POD      CPUS\ndb       7\nweb-2    12\nweb-10   3\n");
  EXPECT_EQ(MessageOf(table.SortBy("age")),
            "there is no column \"age\" to sort by; choose from POD, CPUS");
}

struct PathCase {
  std::string name;
  std::string path;
  std::string want;
};
class JsonPathTest : public testing::TestWithParam<PathCase> {};

TEST_P(JsonPathTest, PicksPartsOfADocument) {
  const Document document = Document::parse(
      R"({"pods":[{"name":"db","cpus":2,"a.b":true},{"name":"web","cpus":4}],"none":[]})");
  const auto text = EvaluateJsonPath(GetParam().path, document);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, GetParam().want);
}

const PathCase kPaths[] = {
    {"Field", "{.pods[0].name}", "db"},
    {"WithoutBraces", ".pods[1].cpus", "4"},
    {"FromTheEnd", "{.pods[-1].name}", "web"},
    {"All", "{.pods[*].name}", "db web"},
    {"QuotedName", "{.pods[0]['a.b']}", "true"},
    {"Filter", "{.pods[?(@.name==\"web\")].cpus}", "4"},
    {"FilterByNumber", "{.pods[?(@.cpus==2)].name}", "db"},
    {"FilterByPresence", "{.pods[?(@['a.b'])].name}", "db"},
    {"Range", "{range .pods[*]}{.name}={.cpus}{\"\\n\"}{end}", "db=2\nweb=4\n"},
    {"EmptyRange", "{range .none[*]}x{end}", ""},
    {"TextOutside", "first: {.pods[0].name}!", "first: db!"},
    {"ObjectsAreJson", "{.none}", "[]"},
    {"WhatIsNotThere", "{.nobody[3].name}", ""},
};
INSTANTIATE_TEST_SUITE_P(Paths, JsonPathTest, testing::ValuesIn(kPaths),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(JsonPathErrorTest, MistakesAreNamed) {
  for (const char* path : {"{.a", "{.a[}", "{a}", "{.a[x]}", "{range .a}", "{end}", "{.a[?(b)]}"}) {
    const auto text = EvaluateJsonPath(path, Document{{"a", {{1}}}});
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument) << path;
  }
}

TEST(DocumentTest, FieldsKeepTheirOrderAndMapsAreSorted) {
  v1::Allocation allocation;
  allocation.set_resource_name("cpu");
  (*allocation.mutable_envs())["B"] = "2";
  (*allocation.mutable_envs())["A"] = "1";
  (*allocation.mutable_amount_by_node())[1] = 7;
  EXPECT_EQ(
      ToDocument(allocation).dump(),
      R"({"resource_name":"cpu","oci_property":"","value":"","quantity":0.0,)"
      R"("exclusive":false,"envs":{"A":"1","B":"2"},"annotations":{},"hints":[],)"
      R"("amount_by_node":{"1":7},"mounts":[],"devices":[],"may_share":"","shares":"","shares_of":""})");
}

TEST(DocumentTest, BytesThatAreNoUtf8ArePrintedWithoutFailing) {
  std::ostringstream out;
  Print(Document{{"name", "\xff"}}, OutputFormat::kJson, out);
  EXPECT_EQ(out.str(), "{\n  \"name\": \"\xEF\xBF\xBD\"\n}\n");
}

TEST(DocumentTest, YamlHasNumbersAndQuotedLookalikes) {
  std::ostringstream out;
  Print(Document{{"n", 3}, {"text", "3"}, {"flag", true}, {"word", "true"}, {"none", ""}},
        OutputFormat::kYaml, out);
  EXPECT_EQ(out.str(), "n: 3\ntext: \"3\"\nflag: true\nword: \"true\"\nnone: \"\"\n");
}

TEST(ExplainTextTest, DocumentsOfAnyShapeArePrintedWithoutFailing) {
  for (const char* json :
       {"", "[]", "3", "{", R"({"requests":3,"hints":[1],"merged":{"cpu":7},"policy":{}})",
        R"({"allocations":{"cpu":[]},"steps":{"a":1},"merge_reasons":"x"})",
        R"({"hints":{"cpu":[3,{"nodes":"x"}]},"steps":[[]]})"}) {
    std::ostringstream out;
    PrintDecision(ParseDecision(json), out);
  }
}

TEST(ExplainTextTest, LongHintListsAreCut) {
  Document decision;
  for (int i = 0; i < 20; ++i) {
    decision["hints"]["cpu"].push_back({{"nodes", {i}}, {"preferred", false}});
  }
  std::ostringstream out;
  PrintDecision(decision, out);
  EXPECT_NE(out.str().find("node 7; and 12 more"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace qrm::manager::cli::format_test
