// Which connections are closed when answers are not read, and when further answers are made.
#include "manager/rpc/unread_answers.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::unread_answers_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class UnreadAnswersTest : public testing::Test {
 protected:
  static constexpr std::size_t kMost = 100;

  /// Notes that the answer of `name` is made.
  UnreadAnswers::Make Make(const std::string& name) {
    return [this, name] { made_.push_back(name); };
  }

  std::vector<std::string> closed_;
  std::vector<std::string> made_;
  UnreadAnswers answers_{kMost, [this](const std::string& peer) { closed_.push_back(peer); }};
  const int first_ = 0;
  const int second_ = 0;
  const int third_ = 0;
};

TEST_F(UnreadAnswersTest, NoConnectionIsClosedWhileThereIsRoom) {
  answers_.Add("fd:1", &first_, kMost - 1);
  answers_.Add("fd:2", &second_, 1);
  EXPECT_THAT(closed_, IsEmpty());
  EXPECT_EQ(answers_.bytes(), kMost);
}

TEST_F(UnreadAnswersTest, TheLongestWaitingConnectionIsClosed) {
  const uint64_t quick = answers_.Add("fd:1", &first_, 60);
  const uint64_t slow = answers_.Add("fd:2", &second_, 10);
  answers_.Remove(quick);
  answers_.Add("fd:1", &first_, 60);
  answers_.Add("fd:3", &third_, 40);
  EXPECT_THAT(closed_, ElementsAre("fd:2"));
  answers_.Remove(slow);
  EXPECT_EQ(answers_.bytes(), 100u);
}

TEST_F(UnreadAnswersTest, NoOtherConnectionIsClosedUntilTheFirstIsGone) {
  const uint64_t slow = answers_.Add("fd:1", &first_, 60);
  answers_.Add("fd:2", &second_, 60);
  answers_.Add("fd:3", &third_, 60);
  EXPECT_THAT(closed_, ElementsAre("fd:1"));
  answers_.Remove(slow);
  EXPECT_THAT(closed_, ElementsAre("fd:1", "fd:2"));
}

TEST_F(UnreadAnswersTest, AnAnswerThatManyShareCountsOnce) {
  for (int client = 0; client < 1000; ++client) {
    answers_.Add("fd:" + std::to_string(client), &first_, kMost);
  }
  EXPECT_THAT(closed_, IsEmpty());
  EXPECT_EQ(answers_.bytes(), kMost);
}

TEST_F(UnreadAnswersTest, OneAnswerIsSentHoweverLarge) {
  answers_.Add("fd:1", &first_, 10 * kMost);
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(UnreadAnswersTest, AnswersAreMadeAtOnceWhileThereIsRoom) {
  answers_.Add("fd:1", &first_, kMost);
  answers_.WhenRoom(Make("a"));
  EXPECT_THAT(made_, ElementsAre("a"));
}

TEST_F(UnreadAnswersTest, AnswersAreMadeInOrderOnceThereIsRoom) {
  const uint64_t large = answers_.Add("fd:1", &first_, 2 * kMost);
  answers_.WhenRoom([this] {
    made_.emplace_back("a");
    answers_.Add("fd:2", &second_, 2 * kMost);
  });
  answers_.WhenRoom(Make("b"));
  EXPECT_THAT(made_, IsEmpty());
  EXPECT_THAT(closed_, ElementsAre("fd:1")) << "so that others do not wait for ever";
  answers_.Remove(large);
  EXPECT_THAT(made_, ElementsAre("a"));
  EXPECT_THAT(closed_, ElementsAre("fd:1", "fd:2"));
}

TEST_F(UnreadAnswersTest, AnAnswerIsNotMadeWhileAnotherIs) {
  answers_.WhenRoom([this] {
    answers_.WhenRoom(Make("b"));
    made_.emplace_back("a");
  });
  EXPECT_THAT(made_, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace qrm::manager::unread_answers_test
