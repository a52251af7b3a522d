// Valid names of resources.
#include "api/resource.h"

#include <string>

#include <gtest/gtest.h>

namespace qrm::resource_test {
namespace {

class GoodResourceNameTest : public testing::TestWithParam<std::string> {};
TEST_P(GoodResourceNameTest, IsAccepted) {
  EXPECT_TRUE(CheckResourceName(GetParam()).ok());
}
INSTANTIATE_TEST_SUITE_P(Names, GoodResourceNameTest,
                         testing::Values("cpu", "NIC", "hugepages-2Mi",
                                         "resource.katalyst.kubewharf.io/net_bandwidth"));

class BadResourceNameTest : public testing::TestWithParam<std::string> {};
TEST_P(BadResourceNameTest, IsRejected) {
  EXPECT_EQ(CheckResourceName(GetParam()).code(), StatusCode::kInvalidArgument);
}
INSTANTIATE_TEST_SUITE_P(Names, BadResourceNameTest,
                         testing::Values("", "/", "a/", "/a", "a/b/c", "-a", "a-", "a b",
                                         "Example.com/x", "../cpu", std::string(64, 'a'),
                                         std::string(254, 'a') + "/x"));

}  // namespace
}  // namespace qrm::resource_test
