// The small JSON objects of annotations, and their limits.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/rules/qos_annotations.h"

namespace qrm::rules::flat_json_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(FlatJsonTest, TakesStringsAndBooleansOfTheOutermostObject) {
  const auto values = ParseFlatJson(R"({"a": "1", "b": true, "c": false, "d": 2, "e": null})");
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, ElementsAre(Pair("a", "1"), Pair("b", "true"), Pair("c", "false")));
  EXPECT_THAT(*ParseFlatJson("{}"), IsEmpty());
}

TEST(FlatJsonTest, RejectsWhatIsNotAnObject) {
  for (const char* text : {"", "{", "[]", "\"text\"", "1", "true", "null", "{} x", "{'a': 1}"}) {
    EXPECT_EQ(MessageOf(ParseFlatJson(text).status()),
              R"(is not a JSON object; write one such as {"numa_binding": "true"})")
        << text;
  }
}

TEST(FlatJsonTest, RejectsWhatReadersUnderstandInTwoWays) {
  EXPECT_EQ(MessageOf(ParseFlatJson(R"({"b": {"pool": "a"}})").status()),
            "has an object or a list in 'b'; write a string, true or false");
  EXPECT_EQ(MessageOf(ParseFlatJson(R"({"pool": "a", "b": 1, "pool": "c"})").status()),
            "has key 'pool' twice; remove one of them");
  EXPECT_EQ(MessageOf(ParseFlatJson(R"({"p\u006fol": "a"})").status()),
            "has a backslash; write keys and values without escapes");
}

TEST(FlatJsonTest, RejectsDeeperNesting) {
  EXPECT_THAT(MessageOf(ParseFlatJson(R"({"a": [[[[1]]]]})").status()),
              HasSubstr("nested more than 4 deep"));
  const std::string deep = "{\"a\":" + std::string(4000, '[');
  EXPECT_THAT(MessageOf(ParseFlatJson(deep).status()), HasSubstr("nested more than 4 deep"));
}

TEST(FlatJsonTest, RejectsMoreValues) {
  std::string keys;
  for (int i = 0; i < 64; ++i) {
    keys += fmt::format("\"k{}\": 1,", i);
  }
  EXPECT_TRUE(ParseFlatJson("{" + keys.substr(0, keys.size() - 1) + "}").ok());
  EXPECT_THAT(MessageOf(ParseFlatJson("{" + keys + "\"more\": 1}").status()),
              HasSubstr("more than 64 values"));
}

TEST(FlatJsonTest, RejectsMoreBytesUnread) {
  EXPECT_EQ(MessageOf(ParseFlatJson(std::string(4097, ' ')).status()),
            "has 4097 bytes, more than 4096; remove unused keys");
}

}  // namespace
}  // namespace qrm::rules::flat_json_test
