// The CPUs that pools should have by the CPU use of their containers.
#include <gtest/gtest.h>

#include "api/id_set.h"
#include "plugins/cpu/sizing/pool_size.h"

namespace qrm::cpu::use_test {
namespace {

TEST(WishByUseTest, KeepsCpusAsBusyAsTheyAreToBeAndGrowsUnderPressure) {
  struct Case {
    const char* about;
    Use use;
    int size;
    int wish;
  };
  const Case cases[] = {
      {"idle", {0, 0}, 8, 0},
      {"three quarters of eight", {6, 0}, 8, 8},
      {"a little more", {6.1, 0}, 8, 9},
      {"more than it has", {12, 0}, 8, 16},
      {"threads wait, though CPUs idle", {2, 0.1}, 8, 9},
      {"threads wait now and then", {2, 0.09}, 8, 3},
      {"a large pool grows by a tenth", {2, 1}, 40, 44},
      {"threads wait because it is too small", {12, 1}, 8, 16},
      {"no pool at all yet", {0, 1}, 0, 1},
      {"nonsense of the kernel", {1e12, 0}, 8, CpuSet::kMaxIds},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(WishByUse(UseRule(), one.use, one.size, 0), one.wish) << one.about;
  }
}

TEST(WishByUseTest, GivesAPoolItsRequestsAsSoonAsItNeedsMoreThanItHas) {
  EXPECT_EQ(WishByUse(UseRule(), {3.5, 0}, 4, 16), 16) << "busier than it is to be";
  EXPECT_EQ(WishByUse(UseRule(), {1, 0.2}, 4, 16), 16) << "threads wait";
  EXPECT_EQ(WishByUse(UseRule(), {1, 0}, 4, 16), 2) << "no load";
  EXPECT_EQ(WishByUse(UseRule(), {15, 0}, 16, 16), 20) << "more than that";
}

}  // namespace
}  // namespace qrm::cpu::use_test
