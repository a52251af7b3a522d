#include "scheduler/cache/feed.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler::feed_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Object Make(const std::string& name, const std::string& node, int value) {
  return {.name = name,
          .body = std::make_shared<const nlohmann::json>(
              nlohmann::json{{"node", node}, {"value", value}})};
}

// Writes down what a subscriber receives: "n1=4", "n1 gone".
class FeedTest : public testing::Test {
 protected:
  FeedTest() {
    feed_.Subscribe(
        "things", [](const nlohmann::json& body) { return TextAt(body, "/node"); },
        [this](const std::string& node, const nlohmann::json* body) {
          heard_.push_back(body == nullptr ? node + " gone"
                                           : node + "=" + body->at("value").dump());
        });
  }
  std::vector<std::string> Heard() { return std::exchange(heard_, {}); }

  Feed feed_;
  std::vector<std::string> heard_;
};

TEST_F(FeedTest, ReportsAChangeOnce) {
  feed_.Set("things", Make("a", "n1", 4));
  feed_.Set("things", Make("a", "n1", 4));
  EXPECT_THAT(Heard(), ElementsAre("n1=4"));
}

TEST_F(FeedTest, MovesAnObjectThatNamesAnotherNode) {
  feed_.Set("things", Make("a", "n1", 4));
  feed_.Set("things", Make("a", "n2", 4));
  EXPECT_THAT(Heard(), ElementsAre("n1=4", "n1 gone", "n2=4"));
}

TEST_F(FeedTest, TheFirstByNameCountsWhereTwoAreAboutANode) {
  feed_.Set("things", Make("b", "n1", 2));
  feed_.Set("things", Make("a", "n1", 1));
  feed_.Set("things", Make("b", "n1", 3));
  feed_.Delete("things", "a");
  EXPECT_THAT(Heard(), ElementsAre("n1=2", "n1=1", "n1=3"));
}

TEST_F(FeedTest, ReportsWhatAListDoesNotShowAsGone) {
  feed_.Set("things", Make("a", "n1", 1));
  feed_.Set("things", Make("b", "n2", 2));
  feed_.Replace("things", {Make("b", "n2", 2), Make("c", "n3", 3)});
  EXPECT_THAT(Heard(), ElementsAre("n1=1", "n2=2", "n3=3", "n1 gone"));
}

TEST_F(FeedTest, IgnoresTheEndOfUnknownObjects) {
  feed_.Delete("things", "a");
  feed_.Set("others", Make("a", "n1", 1));
  EXPECT_THAT(Heard(), IsEmpty());
}

TEST_F(FeedTest, AnObjectAboutNoNodeReportsNothing) {
  feed_.Set("things", Make("a", "", 1));
  EXPECT_THAT(Heard(), IsEmpty());
}

}  // namespace
}  // namespace qrm::scheduler::feed_test
