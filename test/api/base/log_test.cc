// The form of log lines.
#include "api/base/log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/log_settings.h"

namespace qrm::log::log_test {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

TEST(LogTest, QuotesOnlyValuesThatNeedIt) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  Info("plugin registered",
       {{"resource", "cpu"}, {"why", "a \"b\"\nc"}, {"count", 3}, {"none", ""}});
  SetSink(nullptr);
  EXPECT_THAT(lines,
              ElementsAre(R"("plugin registered" resource=cpu why="a \"b\"\nc" count=3 none="")"));
}

TEST(LogTest, NamesPodsBesideTheirUids) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  NamePods([](const std::string& uid) { return uid == "1-2" ? "default/web" : ""; });
  Info("seen", {{"pod", "1-2"}, {"container", "main"}});
  Info("seen", {{"pod", "3-4"}, {"other", "1-2"}});
  NamePods(nullptr);
  SetSink(nullptr);
  EXPECT_THAT(lines, ElementsAre(R"("seen" pod=default/web uid=1-2 container=main)",
                                 R"("seen" pod=3-4 other=1-2)"));
}

TEST(LogTest, LetsNoValueMoveTheCursorOrEndTheLine) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  Info("seen", {{"escape", "\x1b[2J"}, {"c1", "a\xc2\x9b"}, {"lone", "\x9b"}, {"umlaut", "ä"}});
  SetSink(nullptr);
  EXPECT_THAT(lines, ElementsAre(R"("seen" escape="\x1b[2J" c1="a\xc2\x9b" lone="\x9b" umlaut=ä)"));
}

TEST(LogTest, CutsValuesAndReportsTheirLength) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  Info("long", {{"text", std::string(100'000, 'x')}});
  SetSink(nullptr);
  EXPECT_THAT(lines, ElementsAre(EndsWith("... (100000 bytes)\"")));
  EXPECT_LT(lines.front().size(), 5000);
}

TEST(LogTest, WritesTheSameAsMembersOfAJsonObject) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  SetForm(Form::kJson);
  Info("seen", {{"why", "a \"b\" \\x\nc"}, {"count", 3}, {"escape", "\x1b[2J"}, {"lone", "\x9b"}});
  SetForm(Form::kText);
  SetSink(nullptr);
  EXPECT_THAT(
      lines,
      ElementsAre(
          R"("event":"seen","why":"a \"b\" \\x\nc","count":"3","escape":"\u001b[2J","lone":"\u009b"})"));
}

TEST(LogTest, ShowsFormatCharactersInsteadOfObeyingThem) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  Info("seen", {{"name", "gpj.\u202egnp"}});
  SetForm(Form::kJson);
  Info("seen", {{"name", "gpj.\u202egnp"}});
  SetForm(Form::kText);
  SetSink(nullptr);
  EXPECT_THAT(lines, ElementsAre("\"seen\" name=\"gpj.\\u202egnp\"",
                                 "\"event\":\"seen\",\"name\":\"gpj.\\u202egnp\"}"));
}

TEST(LogTest, DropsLinesBelowTheLevel) {
  std::vector<std::string> lines;
  SetSink([&](Level, const std::string& line) { lines.push_back(line); });
  SetLevel(Level::kWarning);
  Info("dropped");
  Warning("kept");
  SetLevel(Level::kInfo);
  SetSink(nullptr);
  EXPECT_THAT(lines, ElementsAre("\"kept\""));
}

TEST(LogTest, RejectsUnknownLevelsByName) {
  EXPECT_TRUE(ParseLevel("debug").ok());
  EXPECT_EQ(MessageOf(ParseLevel("loud").status()),
            "cannot read log level \"loud\"; use debug, info, warning or error");
  EXPECT_TRUE(ParseForm("json").ok());
  EXPECT_EQ(MessageOf(ParseForm("xml").status()), "cannot read log form \"xml\"; use text or json");
}

}  // namespace
}  // namespace qrm::log::log_test
