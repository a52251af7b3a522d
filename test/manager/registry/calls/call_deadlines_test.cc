#include "manager/registry/calls/call_deadlines.h"

#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "api/base/clock.h"
#include "test/support/loop_thread.h"

namespace qrm::manager::call_deadlines_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class CallDeadlinesTest : public testing::Test {
 protected:
  /// Watches a deadline that is `after` from the test's start.
  CallDeadlines::Watch Note(milliseconds after, const std::string& word) {
    return deadlines_.Begin(start_ + after, [this, word] { words_ += word; });
  }

  /// The deadlines that passed until `after` from now.
  std::string WordsAfter(milliseconds after) {
    const auto come = std::make_shared<std::promise<void>>();
    deadlines_.Begin(DeadlineAfter(after), [come] { come->set_value(); });
    come->get_future().wait();
    std::string words;
    loop_.Run([&] { words = words_; });
    return words;
  }

  const Deadline start_ = std::chrono::steady_clock::now();
  test::LoopThread loop_;
  std::string words_;  // on the loop
  CallDeadlines deadlines_{loop_.io()};
};

TEST_F(CallDeadlinesTest, ExpireInTheirOrderWhateverTheOrderOfBegin) {
  Note(milliseconds(10), "second ");
  Note(milliseconds(5), "first ");
  Note(hours(1), "never ");
  EXPECT_EQ(WordsAfter(milliseconds(20)), "first second ");
}

TEST_F(CallDeadlinesTest, PassedOnesExpireAtOnce) {
  Note(milliseconds(-5), "late ");
  EXPECT_EQ(WordsAfter(milliseconds(0)), "late ");
}

TEST_F(CallDeadlinesTest, EndedOnesDoNotExpire) {
  const auto ended = Note(milliseconds(5), "ended ");
  Note(milliseconds(5), "watched ");
  deadlines_.End(ended);
  deadlines_.End(ended);
  EXPECT_EQ(WordsAfter(milliseconds(10)), "watched ");
}

TEST_F(CallDeadlinesTest, LaterOnesAreWatchedAfterTheFirstExpired) {
  EXPECT_EQ(WordsAfter(milliseconds(1)), "");
  Note(milliseconds(5), "later ");
  EXPECT_EQ(WordsAfter(milliseconds(10)), "later ");
}

TEST(CallDeadlinesEndTest, NothingExpiresOnceItIsGone) {
  test::LoopThread loop;
  bool expired = false;
  loop.Run([&] {  // on the loop where it could expire, so that it cannot
    CallDeadlines deadlines(loop.io());
    deadlines.Begin(DeadlineAfter(milliseconds(0)), [&] { expired = true; });
  });
  CallDeadlines next(loop.io());
  std::promise<void> come;
  next.Begin(DeadlineAfter(milliseconds(10)), [&] { come.set_value(); });
  come.get_future().wait();
  EXPECT_FALSE(expired);
}

}  // namespace
}  // namespace qrm::manager::call_deadlines_test
