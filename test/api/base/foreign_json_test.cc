// Foreign JSON: what is read of it, and its limits.
#include "api/base/foreign_json.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/base/rejected.h"

namespace qrm::foreign_json_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Repeated(const std::string& text, std::size_t times) {
  std::string repeated;
  for (std::size_t i = 0; i < times; ++i) {
    repeated += text;
  }
  return repeated;
}

TEST(ParseJsonTest, BuildsTheDocumentThatTheLibraryWouldBuild) {
  const std::string text =
      R"({"a": [1, -2, 3.5, "x", null, true, {"b": {}, "c": []}], "d": {"a": 1}, "d": "last", "": [[], [7]]})";
  const StatusOr<json> document = ParseJson(text);
  ASSERT_TRUE(document.ok()) << document.status();
  EXPECT_EQ(*document, json::parse(text));
  for (const char* scalar : {"7", "\"x\"", "null", "[]", "{}"}) {
    EXPECT_EQ(ParseJson(scalar).value(), json::parse(scalar));
  }
}

TEST(ParseJsonTest, SaysWhereTextIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "{} {}", "{'a': 1}", "\"\xff\"", "1e999"}) {
    const Status status = ParseJson(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr("is not JSON: ")) << text;
  }
}

TEST(ParseJsonTest, RejectsDeeperNesting) {
  const uint64_t rejected = RejectedSoFar(Rejected::kJson);
  const JsonBounds bounds{.depth = 3};
  EXPECT_TRUE(ParseJson(R"([{"a": []}, {"a": []}])", bounds).ok());
  const Status status = ParseJson(R"([{"a": [{}]}])", bounds).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "is nested more than 3 deep");
  EXPECT_EQ(RejectedSoFar(Rejected::kJson), rejected + 1);
  for (const char* opening : {"[", "{\"a\":", "[{\"a\":"}) {
    EXPECT_EQ(ParseJson(Repeated(opening, 200'000)).status().code(),
              StatusCode::kResourceExhausted);
  }
}

TEST(ParseJsonTest, CountsTheValuesOfAllLevels) {
  const JsonBounds bounds{.values = 5};
  EXPECT_TRUE(ParseJson(R"({"a": [1, 2], "b": {"c": 3}})", bounds).ok());
  const Status status = ParseJson(R"({"a": [1, 2], "b": {"c": 3}, "d": 4})", bounds).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "has more than 5 values");
}

TEST(ParseJsonTest, RejectsMoreBytesUnread) {
  EXPECT_TRUE(ParseJson("[ 1 ]", {.bytes = 5}).ok());
  const Status status = ParseJson("no JSON", {.bytes = 6}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "has 7 bytes, more than 6");
}

TEST(ParseJsonListTest, GivesEachItemOnceAndKeepsNone) {
  std::vector<std::string> items;
  const StatusOr<json> rest = ParseJsonList(
      R"({"kind": "PodList", "items": [{"items": [1, {"x": []}]}, 2, [3], {}], "metadata": {"items": [4]}})",
      [&](const json& item) { items.push_back(item.dump()); });
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(items, ElementsAre(R"({"items":[1,{"x":[]}]})", "2", "[3]", "{}"));
  EXPECT_EQ(rest->dump(), R"({"items":[],"kind":"PodList","metadata":{"items":[4]}})");
}

TEST(ParseJsonListTest, TakesItemsOfListsOnly) {
  std::vector<std::string> items;
  const auto take = [&](const json& item) { items.push_back(item.dump()); };
  const StatusOr<json> twice = ParseJsonList(R"({"items": [1], "items": {"a": 2}})", take);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_EQ(twice->dump(), R"({"items":{"a":2}})");
  for (const char* text : {R"({"items": null})", R"({"items": 3})", R"([{"items": [2]}])", "[1]"}) {
    EXPECT_EQ(ParseJsonList(text, take).value(), json::parse(text));
  }
  EXPECT_THAT(items, ElementsAre("1"));
}

TEST(ParseJsonListTest, BoundsEachItemAndTheirNumber) {
  const JsonBounds bounds{.values = 10};
  const auto parse = [&](const std::string& text) {
    return ParseJsonList(text, [](const json&) {}, bounds).status();
  };
  EXPECT_TRUE(parse(R"({"items": [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]]})").ok());
  EXPECT_EQ(parse(R"({"items": [[1, 2, 3, 4, 5, 6, 7, 8, 9]]})").code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(parse("{\"items\": [" + Repeated("{},", 8) + "{}]}").ok());
  EXPECT_EQ(parse("{\"items\": [" + Repeated("{},", 9) + "{}]}").code(),
            StatusCode::kResourceExhausted);
}

TEST(ParseJsonListTest, EndsAtOnceBeyondABound) {
  std::size_t taken = 0;
  const Status status = ParseJsonList("{\"items\": [" + Repeated("{},", 1'000'000) + "{}]}",
                                      [&](const json&) { ++taken; }, {.values = 1000})
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(taken, 999u);
}

}  // namespace
}  // namespace qrm::foreign_json_test
