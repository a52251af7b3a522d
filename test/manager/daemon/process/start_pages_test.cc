// What the process has of its program's file when it has given pages back.
#include "manager/daemon/process/start_pages.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace qrm::manager::start_pages_test {
namespace {

/// The number in a line of /proc/self/status.
long StatusOf(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word == name + ":") {
      long amount = 0;
      file >> amount;
      return amount;
    }
  }
  return 0;
}

TEST(StartPagesTest, CodeIsNoLongerResidentAndRunsAgain) {
  if (StatusOf("TracerPid") != 0) {
    GTEST_SKIP() << "a debugger's breakpoints keep the pages; run the test without it";
  }
  const long before = StatusOf("RssFile");
  ASSERT_GT(before, 0);
  GiveBackStartPages();
  EXPECT_LT(StatusOf("RssFile"), before);
}

}  // namespace
}  // namespace qrm::manager::start_pages_test
