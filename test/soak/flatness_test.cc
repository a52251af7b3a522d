// The rule by which a soak ends well or not.
#include "test/soak/flatness.h"

#include <vector>

#include <gtest/gtest.h>

namespace qrm::test::flatness_test {
namespace {

TEST(FlatnessTest, TakesWhatStaysWithinTheTolerance) {
  EXPECT_TRUE(Judge({100, 100, 105, 103, 109, 109}, {.factor = 1.1}).flat);
  EXPECT_TRUE(Judge({10, 10, 10, 12, 12, 12}, {.factor = 1, .extra = 2}).flat);
  EXPECT_TRUE(Judge({50, 40, 30, 20, 10, 5}, {.factor = 1}).flat);
}

TEST(FlatnessTest, RejectsSteadyGrowth) {
  std::vector<double> values;
  values.reserve(26);
  for (int minute = 0; minute < 26; ++minute) {
    values.push_back(100 + minute);
  }
  const Flatness grown = Judge(values, {.factor = 1.1});
  EXPECT_FALSE(grown.flat);
  EXPECT_EQ(grown.early, 103);
  EXPECT_EQ(grown.late, 121);
}

TEST(FlatnessTest, LetsOneBadMinuteDecideNothing) {
  EXPECT_TRUE(Judge({10, 10, 10, 10, 10, 10, 10, 900, 10}, {.factor = 1.1}).flat);
}

TEST(FlatnessTest, TakesPercentilesByNearestRank) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(Percentile(values, 0.5), 2);
  EXPECT_EQ(Percentile(values, 0.99), 4);
  EXPECT_EQ(Percentile(values, 0), 1);
  EXPECT_EQ(Percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace qrm::test::flatness_test
