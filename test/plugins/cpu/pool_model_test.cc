// Random histories of elastic pools and owners on random machines. QRM_POOL_HISTORIES=17000 plays a
// million steps.
#include <string>

#include <gtest/gtest.h>

#include "test/plugins/cpu/pool_history.h"

namespace qrm::cpu::pool_model_test {
namespace {

TEST(PoolModelTest, RandomHistoriesKeepTheRules) {
  const int histories = Histories();
  int admitted = 0;
  for (int seed = 1; seed <= histories; ++seed) {
    History history(static_cast<unsigned>(seed));
    for (int step = 0; step < 60; ++step) {
      ASSERT_NO_FATAL_FAILURE(history.Step()) << "seed " << seed << ", step " << step << " of\n"
                                              << history.text();
    }
    ASSERT_NO_FATAL_FAILURE(CheckTuning(history.node())) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(history.Converge()) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(CheckTuning(history.node())) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(history.ComeAndGo()) << "seed " << seed;
    admitted += history.admitted();
  }
  EXPECT_GT(admitted, 8 * histories);
}

// P9.
TEST(PoolModelTest, TheSameHistoryEndsTheSame) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const auto end = [seed] {
      History history(seed);
      for (int step = 0; step < 60; ++step) {
        history.Step();
      }
      return history.Exported();
    };
    const std::string first = end();
    EXPECT_EQ(end(), first) << "seed " << seed;
  }
}

}  // namespace
}  // namespace qrm::cpu::pool_model_test
