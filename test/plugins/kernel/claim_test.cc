// The result of several claims on one file.
#include "plugins/kernel/claim.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/support/is_ok.h"

namespace qrm::kernel::claim_test {
namespace {

using testing::HasSubstr;

struct Case {
  std::string name;
  ClaimForm form;
  std::string original;
  std::vector<std::string> values;
  std::string want;
};

class CombineTest : public testing::TestWithParam<Case> {};

TEST_P(CombineTest, ServesAllOrSaysWhyNot) {
  const auto& [name, form, original, values, want] = GetParam();
  const auto combined = Combine(form, original, values, CpuSet::Range(0, 7));
  EXPECT_THAT(combined.ok() ? *combined : MessageOf(combined.status()), HasSubstr(want));
}

const Case kCases[] = {
    {"SameWord", ClaimForm::kWord, "powersave", {"performance", "performance"}, "performance"},
    {"OtherWord", ClaimForm::kWord, "a", {"b", "c"}, "'b' and 'c' are requested at once"},
    {"HighestFloor", ClaimForm::kFloor, "800", {"1200", "2000", "900"}, "2000"},
    {"LowestCeiling", ClaimForm::kCeiling, "3000", {"1200", "2000"}, "1200"},
    {"NoNumber", ClaimForm::kFloor, "800", {"fast"}, "'fast' is not a number"},
    {"ShortestLatency", ClaimForm::kLatency, "0", {"20", "5"}, "5"},
    {"NoIdleIsShorter", ClaimForm::kLatency, "0", {"20", "n/a"}, "n/a"},
    {"Cpus", ClaimForm::kCpuList, "0-7", {"2-3", "5"}, "0-1,4,6-7"},
    {"CpusOfNobodyElse", ClaimForm::kCpuList, "3", {"2-3"}, "0-1,4-7"},
    {"OnlyOfflineOnesLeft", ClaimForm::kCpuList, "3,9", {"3"}, "0-2,4-7"},
    {"NoCpuLeft", ClaimForm::kCpuList, "0-7", {"0-7"}, "no CPU would handle interrupts"},
    {"Mask", ClaimForm::kCpuMask, "ff", {"2-3"}, "f3"},
    {"WideMask", ClaimForm::kCpuMask, "00000000,000000ff", {"0"}, "00000000,000000fe"},
    {"MoreCpus", ClaimForm::kCpuUnion, "", {"2-3", "5"}, "2-3,5"},
    {"MoreCpusThanBefore", ClaimForm::kCpuUnion, "9", {"2"}, "2,9"},
    {"Partition", ClaimForm::kPartition, "member", {"isolated"}, "isolated"},
    {"OtherPartition",
     ClaimForm::kPartition,
     "member",
     {"isolated", "root"},
     "are requested at once"},
    {"NoMask", ClaimForm::kCpuMask, "0-7", {"0"}, "'0-7' is not a mask of CPUs"},
};
INSTANTIATE_TEST_SUITE_P(Forms, CombineTest, testing::ValuesIn(kCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(CpuMaskTest, IsReadAndWrittenAsTheKernelDoes) {
  for (const char* text : {"3", "ff", "00000001,00000000", "ffffffff,ffffffff,00000000"}) {
    const auto cpus = ParseCpuMask(text);
    ASSERT_TRUE(test::IsOk(cpus.status()));
    EXPECT_EQ(CpuMaskText(*cpus, text), text);
  }
  EXPECT_EQ(*ParseCpuMask("00000001,00000002"), (CpuSet{1, 32}));
}

TEST(SameValueTest, ListsOfCpusAreComparedAsSets) {
  EXPECT_TRUE(IsSameValue(ClaimForm::kCpuList, "0,1,2", "0-2"));
  EXPECT_TRUE(IsSameValue(ClaimForm::kCpuMask, "0f", "f"));
  EXPECT_FALSE(IsSameValue(ClaimForm::kFloor, "010", "10"));
}

TEST(SameValueTest, AnInvalidPartitionDiffersFromTheRequestButComesFromIt) {
  const std::string shown = "isolated invalid (Parent is not a partition root)";
  EXPECT_FALSE(IsSameValue(ClaimForm::kPartition, shown, "isolated"));
  EXPECT_TRUE(ComesFrom(ClaimForm::kPartition, shown, "isolated"));
  EXPECT_FALSE(ComesFrom(ClaimForm::kPartition, "root invalid (Parent is not a partition root)",
                         "isolated"));
}

}  // namespace
}  // namespace qrm::kernel::claim_test
