// Which connections are closed when answers are not read.
#include "manager/rpc/unread_answers.h"

#include <string>

#include <gtest/gtest.h>

namespace qrm::manager::unread_answers_test {
namespace {

class UnreadAnswersTest : public testing::Test {
 protected:
  static constexpr std::size_t kMost = 100;

  UnreadAnswers answers_{kMost};
  const int first_ = 0;
  const int second_ = 0;
  const int third_ = 0;
};

TEST_F(UnreadAnswersTest, NoConnectionIsClosedWhileThereIsRoom) {
  EXPECT_EQ(answers_.Add("fd:1", &first_, kMost - 1).to_disconnect, "");
  EXPECT_EQ(answers_.Add("fd:2", &second_, 1).to_disconnect, "");
  EXPECT_EQ(answers_.bytes(), kMost);
}

TEST_F(UnreadAnswersTest, TheLongestWaitingConnectionIsClosed) {
  const auto quick = answers_.Add("fd:1", &first_, 60);
  const auto slow = answers_.Add("fd:2", &second_, 10);
  answers_.Remove(quick.number);
  answers_.Add("fd:1", &first_, 60);
  EXPECT_EQ(answers_.Add("fd:3", &third_, 60).to_disconnect, "fd:2");
  answers_.Remove(slow.number);
  EXPECT_EQ(answers_.bytes(), 120u);
}

TEST_F(UnreadAnswersTest, NoOtherConnectionIsClosedUntilTheFirstIsGone) {
  const auto slow = answers_.Add("fd:1", &first_, 60);
  EXPECT_EQ(answers_.Add("fd:2", &second_, 60).to_disconnect, "fd:1");
  EXPECT_EQ(answers_.Add("fd:3", &third_, 60).to_disconnect, "");
  answers_.Remove(slow.number);
  const int fourth = 0;
  EXPECT_EQ(answers_.Add("fd:4", &fourth, 1).to_disconnect, "fd:2");
}

TEST_F(UnreadAnswersTest, AnAnswerThatManyShareCountsOnce) {
  for (int client = 0; client < 1000; ++client) {
    ASSERT_EQ(answers_.Add("fd:" + std::to_string(client), &first_, kMost).to_disconnect, "");
  }
  EXPECT_EQ(answers_.bytes(), kMost);
}

TEST_F(UnreadAnswersTest, OneAnswerIsSentHoweverLarge) {
  EXPECT_EQ(answers_.Add("fd:1", &first_, 10 * kMost).to_disconnect, "");
}

}  // namespace
}  // namespace qrm::manager::unread_answers_test
