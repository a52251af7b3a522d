#include "scheduler/extender/messages.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/is_ok.h"

namespace qrm::scheduler::messages_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kPod[] = R"("Pod":{"metadata":{"name":"p","namespace":"d","uid":"u"},"spec":{}})";

std::string Question(const std::string& rest) {
  return std::string("{") + kPod + "," + rest + "}";
}

TEST(MessagesTest, NodesAreReadInTheirOrder) {
  const auto question =
      ParseNodesQuestion(Question(R"("Nodes":null,"NodeNames":["n2","n1","n3"])"));
  ASSERT_TRUE(test::IsOk(question.status()));
  EXPECT_EQ(question->pod.uid, "u");
  EXPECT_THAT(question->nodes, ElementsAre("n2", "n1", "n3"));
}

TEST(MessagesTest, WholeNodesAreRejectedWithTheKeyToSet) {
  const auto question = ParseNodesQuestion(Question(R"("Nodes":{"items":[]},"NodeNames":null)"));
  EXPECT_THAT(MessageOf(question.status()), HasSubstr("set nodeCacheCapable: true"));
}

TEST(MessagesTest, WhatIsNotAQuestionIsAnError) {
  for (const char* body : {"", "[]", "{}", R"({"Pod":{},"NodeNames":[]})", R"({"Pod":7})"}) {
    EXPECT_EQ(ParseNodesQuestion(body).status().code(), StatusCode::kInvalidArgument) << body;
  }
}

// Copies and prints of deeper objects would fill the stack.
TEST(MessagesTest, NestingThatNoPodHasIsAnError) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  for (const auto& parse :
       {+[](const std::string& body) { return ParseNodesQuestion(body).status(); },
        +[](const std::string& body) { return ParsePreemptQuestion(body).status(); },
        +[](const std::string& body) { return ParseBindQuestion(body).status(); }}) {
    EXPECT_THAT(MessageOf(parse(R"({"Pod":{"metadata":)" + deep + "}}")),
                HasSubstr("nested more than 64 deep"));
  }
}

TEST(MessagesTest, MoreValuesThanAPodAndItsNodesHaveAreAnError) {
  std::string names = R"("n1")";
  for (int i = 0; i < 150'000; ++i) {
    names += R"(,"n1")";
  }
  const auto question = ParseNodesQuestion(Question(R"("NodeNames":[)" + names + "]"));
  EXPECT_THAT(MessageOf(question.status()), HasSubstr("more than 150000 values"));
}

// A missing list would mean "no node fits, for no reason".
TEST(MessagesTest, AnAnswerWithoutNodesHasAnEmptyList) {
  EXPECT_EQ(json::parse(WriteFilter({.refused = {{"n1", "no room"}}})),
            json::parse(R"({"Nodes":null,"NodeNames":[],"FailedNodes":{"n1":"no room"},
                            "FailedAndUnresolvableNodes":{},"Error":""})"));
}

TEST(MessagesTest, AFailureIsAnErrorAndNoRejection) {
  const json answer =
      json::parse(WriteFilterFailure(Status(StatusCode::kUnavailable, "cannot judge")));
  EXPECT_EQ(answer["Error"], "cannot judge");
  EXPECT_EQ(answer["FailedNodes"], json::object());
}

TEST(MessagesTest, ScoresNameTheirHosts) {
  EXPECT_EQ(json::parse(WriteScores({{"n1", 7}, {"n2", 0}})),
            json::parse(R"([{"Host":"n1","Score":7},{"Host":"n2","Score":0}])"));
}

TEST(MessagesTest, ABindingNeedsAllOfItsNames) {
  const auto whole =
      ParseBindQuestion(R"({"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n1"})");
  ASSERT_TRUE(test::IsOk(whole.status()));
  EXPECT_EQ(whole->node, "n1");
  const auto half = ParseBindQuestion(R"({"PodName":"p","PodNamespace":"d","Node":"n1"})");
  EXPECT_THAT(MessageOf(half.status()), HasSubstr("has no PodUID"));
}

TEST(MessagesTest, ABindingThatWasDoneHasNoError) {
  EXPECT_EQ(json::parse(WriteBind(OkStatus())), json::parse(R"({"Error":""})"));
}

TEST(MessagesTest, VictimsComeBackAsTheyWere) {
  const auto question = ParsePreemptQuestion(
      Question(R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u9"}],"NumPDBViolations":2}})"));
  ASSERT_TRUE(test::IsOk(question.status()));
  EXPECT_EQ(
      json::parse(WritePreempt(question->victims)),
      json::parse(
          R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u9"}],"NumPDBViolations":2}}})"));
}

}  // namespace
}  // namespace qrm::scheduler::messages_test
