// Token buckets, with time as an argument.
#include "manager/rpc/rate_limiter.h"

#include <gtest/gtest.h>

namespace qrm::manager::rate_limiter_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RateLimiter<int>::Time kStart{seconds(1000)};

TEST(RateLimiterTest, LetsABurstThroughAndNoMore) {
  RateLimiter<int> limiter(100, 10);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(limiter.Allow(1, kStart)) << i;
  }
  EXPECT_FALSE(limiter.Allow(1, kStart));
}

TEST(RateLimiterTest, RefillsAtItsRate) {
  RateLimiter<int> limiter(100, 1);
  EXPECT_TRUE(limiter.Allow(1, kStart));
  EXPECT_FALSE(limiter.Allow(1, kStart + milliseconds(9)));
  EXPECT_TRUE(limiter.Allow(1, kStart + milliseconds(10)));
}

TEST(RateLimiterTest, SavesNoMoreThanABurst) {
  RateLimiter<int> limiter(100, 2);
  EXPECT_TRUE(limiter.Allow(1, kStart));
  const auto later = kStart + seconds(60);
  EXPECT_TRUE(limiter.Allow(1, later));
  EXPECT_TRUE(limiter.Allow(1, later));
  EXPECT_FALSE(limiter.Allow(1, later));
}

TEST(RateLimiterTest, OneCallersLimitIsNotConsumedByAnother) {
  RateLimiter<int> limiter(100, 1);
  EXPECT_TRUE(limiter.Allow(1, kStart));
  EXPECT_FALSE(limiter.Allow(1, kStart));
  EXPECT_TRUE(limiter.Allow(2, kStart));
}

TEST(RateLimiterTest, ForgetsCallersThatAreLongQuiet) {
  RateLimiter<int> limiter(100, 1);
  for (int caller = 0; caller < 10000; ++caller) {
    limiter.Allow(caller, kStart + seconds(caller));
  }
  EXPECT_LT(limiter.callers(), 100u);
}

}  // namespace
}  // namespace qrm::manager::rate_limiter_test
