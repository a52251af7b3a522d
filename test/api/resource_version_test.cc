#include "api/resource_version.h"

#include <gtest/gtest.h>

namespace qrm::resource_version_test {
namespace {

TEST(CompareVersionsTest, LongerNumbersAreNewer) {
  EXPECT_LT(CompareVersions("9", "10"), 0);
  EXPECT_GT(CompareVersions("100", "99"), 0);
  EXPECT_EQ(CompareVersions("42", "42"), 0);
  EXPECT_LT(CompareVersions("", "1"), 0);
}

}  // namespace
}  // namespace qrm::resource_version_test
