// Each way in that docs/ways-in.md lists, attacked beside pods that come and go, or calls of
// kube-scheduler.
#include <atomic>
#include <iostream>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/soak/process_use.h"
#include "test/support/is_ok.h"
#include "test/ways_in/attacked_program.h"
#include "test/ways_in/ways_in_page.h"

namespace qrm::test::ways_in_test {
namespace {

class WaysInTest : public testing::TestWithParam<WayIn> {};

TEST_P(WaysInTest, CostsLittleMemoryAndNoAnswer) {
  const auto program = GetParam().attack(QRM_BIN);
  ASSERT_TRUE(IsOk(program->Start()));
  const double before = ReadProcessUse(program->pid())->resident_mib;
  ForgetPeak(program->pid());
  std::atomic<bool> over = false;
  int answered = 0;
  std::thread honest([&] {
    while (!over || answered == 0) {
      EXPECT_TRUE(IsOk(program->Serve().status()));
      ++answered;
    }
  });
  EXPECT_TRUE(IsOk(program->Attack()));
  over = true;
  honest.join();
  ASSERT_TRUE(program->Runs()) << "it has ended";
  const double peak = ReadProcessUse(program->pid())->peak_mib;
  std::cout << GetParam().name << ": " << before << " MiB before, " << peak << " MiB at most, "
            << answered << " answers beside it\n";
  EXPECT_LE(peak - before, kMostGrowthMib);
}

INSTANTIATE_TEST_SUITE_P(Page, WaysInTest, testing::ValuesIn(AttackedWays()),
                         [](const auto& param_info) { return TestNameOf(param_info.param.name); });

TEST(WaysInPageTest, ListsTheWaysThatHaveAnAttackAndNoOther) {
  std::map<std::string, std::set<std::string>> attacked;
  for (const WayIn& way : AttackedWays()) {
    attacked[way.program].insert(way.name);
  }
  for (const auto& [program, ways] : attacked) {
    EXPECT_THAT(WaysInto(program), testing::UnorderedElementsAreArray(ways));
  }
}

}  // namespace
}  // namespace qrm::test::ways_in_test
