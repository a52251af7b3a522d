// Each way into qrmd that docs/ways-in.md lists, attacked beside pods that come and go.
#include <atomic>
#include <iostream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/soak/process_use.h"
#include "test/support/is_ok.h"
#include "test/ways_in/attacked_node.h"
#include "test/ways_in/daemon_attacks.h"
#include "test/ways_in/ways_in_page.h"

namespace qrm::test::daemon_ways_test {
namespace {

class DaemonWaysTest : public testing::TestWithParam<std::string> {};

TEST_P(DaemonWaysTest, CostsLittleMemoryAndNoAdmission) {
  const auto attack = DaemonAttacks().find(GetParam());
  ASSERT_NE(attack, DaemonAttacks().end())
      << "docs/ways-in.md lists " << GetParam() << ", and no attack tries it; write one";
  AttackedNode node(attack->second, QRM_BIN);
  ASSERT_TRUE(IsOk(node.Start()));
  const double before = ReadProcessUse(node.daemon_pid())->resident_mib;
  ForgetPeak(node.daemon_pid());
  std::atomic<bool> over = false;
  int admitted = 0;
  std::thread honest([&] {
    while (!over || admitted == 0) {
      EXPECT_TRUE(IsOk(node.Admit().status()));
      ++admitted;
    }
  });
  node.Attack();
  over = true;
  honest.join();
  ASSERT_TRUE(node.DaemonRuns()) << "it has ended";
  const double peak = ReadProcessUse(node.daemon_pid())->peak_mib;
  std::cout << GetParam() << ": " << before << " MiB before, " << peak << " MiB at most, "
            << admitted << " admissions beside it\n";
  EXPECT_LE(peak - before, kMostGrowthMib);
}

INSTANTIATE_TEST_SUITE_P(Page, DaemonWaysTest, testing::ValuesIn(WaysInto("qrmd")),
                         [](const auto& param_info) { return TestNameOf(param_info.param); });

TEST(WaysInPageTest, ListsEachWayThatHasAnAttack) {
  for (const auto& [way, attack] : DaemonAttacks()) {
    EXPECT_THAT(WaysInto("qrmd"), testing::Contains(way));
  }
}

}  // namespace
}  // namespace qrm::test::daemon_ways_test
