// Sets of CPUs and NUMA nodes and their list form.
#include "api/id_set.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::id_set_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ListFormCase {
  std::string name;
  std::string text;
  std::string canonical;
};

class IdSetListFormTest : public testing::TestWithParam<ListFormCase> {};

TEST_P(IdSetListFormTest, IsReadAndWrittenCanonically) {
  const StatusOr<CpuSet> set = CpuSet::Parse(GetParam().text);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(ToString(*set), GetParam().canonical);
}

const ListFormCase kListForms[] = {
    {"Empty", "", ""},
    {"WhiteSpace", " 0-3\n", "0-3"},
    {"Single", "7", "7"},
    {"RangesMerge", "0-1,2,3-5", "0-5"},
    {"Unordered", "8,0-2", "0-2,8"},
    {"Duplicates", "1,1,1-1", "1"},
    {"BeyondOneWord", "63-65,130", "63-65,130"},
};
INSTANTIATE_TEST_SUITE_P(Texts, IdSetListFormTest, testing::ValuesIn(kListForms),
                         [](const auto& param_info) { return param_info.param.name; });

class IdSetBadTextTest : public testing::TestWithParam<std::string> {};

TEST_P(IdSetBadTextTest, IsRejectedWithTheTextAndTheForm) {
  const StatusOr<CpuSet> set = CpuSet::Parse(GetParam());
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(set.status()), HasSubstr("\"" + GetParam() + "\""));
  EXPECT_THAT(MessageOf(set.status()), HasSubstr("write it like 0-3,8"));
}

INSTANTIATE_TEST_SUITE_P(Texts, IdSetBadTextTest,
                         testing::Values("a", "1-", "-1", "3-1", "1,,2", ",", "1,", "0x1", "1 2",
                                         "65536", "0-4294967295", "99999999999999999999", "+1"));

TEST(IdSetTest, IteratesInAscendingOrder) {
  const CpuSet set = {130, 0, 64, 63};
  EXPECT_THAT(std::vector<int>(set.begin(), set.end()), ElementsAre(0, 63, 64, 130));
}

TEST(IdSetTest, AlgebraFollowsSetTheory) {
  const CpuSet a = CpuSet::Range(0, 70);
  const CpuSet b = CpuSet::Range(60, 100);
  EXPECT_EQ(ToString(a & b), "60-70");
  EXPECT_EQ(ToString(a | b), "0-100");
  EXPECT_EQ(ToString(a - b), "0-59");
  EXPECT_TRUE((a & b).IsSubsetOf(a));
  EXPECT_FALSE(b.IsSubsetOf(a));
  EXPECT_TRUE(a.Intersects(b));
  EXPECT_FALSE((a - b).Intersects(b));
}

TEST(IdSetTest, EqualSetsAreEqualHoweverTheyWereMade) {
  CpuSet a = {1, 200};
  a.Remove(200);
  EXPECT_EQ(a, CpuSet{1});
  EXPECT_EQ((CpuSet{1, 200} - CpuSet{200}), CpuSet{1});
}

TEST(IdSetTest, ComparesAsNumber) {
  EXPECT_LT((NumaMask{0, 1}.CompareAsNumber(NumaMask{2})), 0);
  EXPECT_GT((NumaMask{64}.CompareAsNumber(NumaMask{0, 63})), 0);
  EXPECT_EQ((NumaMask{3, 5}.CompareAsNumber(NumaMask{5, 3})), 0);
}

TEST(IdSetTest, EndsAreTheSmallestAndLargestId) {
  EXPECT_EQ((CpuSet{5, 128}.First()), 5);
  EXPECT_EQ((CpuSet{5, 128}.Last()), 128);
  EXPECT_EQ(CpuSet().First(), -1);
  EXPECT_EQ(CpuSet().Last(), -1);
}

}  // namespace
}  // namespace qrm::id_set_test
