// What the process has of its program's file when it has given pages back.
#include "manager/daemon/free_memory.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace qrm::manager {
namespace {

/// A line of /proc/self/status. Units: kB.
long ResidentOf(const std::string& name) {
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

TEST(FreeMemoryTest, CodeIsNoLongerResidentAndRunsAgain) {
  const long before = ResidentOf("RssFile");
  ASSERT_GT(before, 0);
  GiveBackStartPages();
  EXPECT_LT(ResidentOf("RssFile"), before);
}

}  // namespace
}  // namespace qrm::manager
