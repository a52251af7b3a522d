#include "manager/observability/loop_watch.h"

#include <deque>
#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::loop_watch_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LoopWatchTest : public testing::Test {
 protected:
  void TurnLoop() {
    for (const auto& job : std::exchange(jobs_, {})) {
      job();
    }
  }

  LoopWatch::Time now_{std::chrono::hours(1)};
  std::deque<std::function<void()>> jobs_;
  LoopWatch watch_{{{"state loop", [this](auto job) { jobs_.push_back(std::move(job)); }},
                    {"I/O loop", [](const auto& job) { job(); }}}};
};

TEST_F(LoopWatchTest, ALoopThatHangsForTheLimitIsNamed) {
  watch_.Look(now_);
  EXPECT_THAT(watch_.Look(now_ + LoopWatch::kLimit - std::chrono::milliseconds(1)), IsEmpty());
  EXPECT_THAT(watch_.Look(now_ + LoopWatch::kLimit),
              ElementsAre(HasSubstr("the state loop has not run for 10 s")));
}

TEST_F(LoopWatchTest, ALoopThatTurnsAgainIsFineAgain) {
  watch_.Look(now_);
  now_ += 2 * LoopWatch::kLimit;
  TurnLoop();
  EXPECT_THAT(watch_.Look(now_), IsEmpty());
  EXPECT_THAT(watch_.Look(now_ + LoopWatch::kLimit / 2), IsEmpty());
}

TEST_F(LoopWatchTest, ALoopThatIsNotAskedIsNotBlamed) {
  watch_.Look(now_);
  TurnLoop();
  EXPECT_THAT(watch_.Look(now_ + 2 * LoopWatch::kLimit), IsEmpty());
}

TEST_F(LoopWatchTest, AHangingLoopGetsOneJobHoweverOftenItIsLookedAt) {
  for (int i = 0; i < 5; ++i) {
    watch_.Look(now_ + i * LoopWatch::kLimit);
  }
  EXPECT_EQ(jobs_.size(), 1U);
}

}  // namespace
}  // namespace qrm::manager::loop_watch_test
