// Which of many repeated lines are logged.
#include "api/base/repeated_lines.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::repeated_lines_test {
namespace {

using std::chrono::seconds;
using testing::Optional;

constexpr std::chrono::steady_clock::time_point kStart{seconds(1000)};

TEST(RepeatedLinesTest, WritesEqualOnesOnceAMinuteWithTheirNumber) {
  RepeatedLines lines;
  EXPECT_THAT(lines.Take("refused", kStart), Optional(0));
  EXPECT_EQ(lines.Take("refused", kStart), std::nullopt);
  EXPECT_EQ(lines.Take("refused", kStart + seconds(59)), std::nullopt);
  EXPECT_THAT(lines.Take("another", kStart + seconds(59)), Optional(0));
  EXPECT_THAT(lines.Take("refused", kStart + seconds(60)), Optional(2));
  EXPECT_EQ(lines.Take("refused", kStart + seconds(61)), std::nullopt);
  EXPECT_THAT(lines.Take("refused", kStart + seconds(180)), Optional(1));
}

TEST(RepeatedLinesTest, WritesALimitedNumberOfDifferentOnesAMinute) {
  RepeatedLines lines;
  for (std::size_t i = 0; i < RepeatedLines::kMostLines; ++i) {
    EXPECT_THAT(lines.Take(std::to_string(i), kStart), Optional(0));
  }
  EXPECT_EQ(lines.Take("more", kStart + seconds(59)), std::nullopt);
  EXPECT_THAT(lines.Take("more", kStart + seconds(60)), Optional(0));
}

TEST(WithoutNumbersTest, LinesThatDifferInNumbersOnlyAreTheSame) {
  EXPECT_EQ(WithoutNumbers("2 CPUs of 16, pool p1"), "N CPUs of N, pool pN");
  EXPECT_EQ(WithoutNumbers("100 CPUs of 4, pool p2"), WithoutNumbers("2 CPUs of 16, pool p1"));
  EXPECT_EQ(WithoutNumbers(""), "");
}

}  // namespace
}  // namespace qrm::repeated_lines_test
