// The labels that a selector matches.
#include "tools/qrmctl/label_selector.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::cli::label_selector_test {
namespace {

using testing::HasSubstr;

const StringMap kWeb = {{"app", "web"}, {"tier", "front"}, {"example.com/team", "a-b"}};

struct Row {
  std::string selector;
  bool matches;
};

class LabelSelectorTest : public testing::TestWithParam<Row> {};

TEST_P(LabelSelectorTest, MeansWhatItMeansToKubectl) {
  const auto selector = LabelSelector::Parse(GetParam().selector);
  ASSERT_TRUE(selector.ok()) << selector.status();
  EXPECT_EQ(selector->Matches(kWeb), GetParam().matches) << GetParam().selector;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, LabelSelectorTest,
    testing::Values(Row{"", true}, Row{"app=web", true}, Row{"app==web", true},
                    Row{"app = web", true}, Row{"app=db", false}, Row{"app!=db", true},
                    Row{"app!=web", false}, Row{"zone!=here", true}, Row{"zone=", false},
                    Row{"app", true}, Row{"!app", false}, Row{"!zone", true}, Row{"zone", false},
                    Row{"app in (db, web)", true}, Row{"app in (db)", false},
                    Row{"app notin (db)", true}, Row{"app notin (db,web)", false},
                    Row{"zone notin (here)", true}, Row{"zone in (here)", false},
                    Row{"example.com/team=a-b", true}, Row{"app=web,tier!=back", true},
                    Row{"app=web,tier=back", false},
                    Row{"app in (web,db),tier in (front),!zone", true}));

TEST(LabelSelectorErrorsTest, NameThePartThatIsNotARequirement) {
  for (const char* wrong : {"app in web", "=web", "app=web,", "app=we b", "app in (web", "!"}) {
    const auto selector = LabelSelector::Parse(wrong);
    EXPECT_EQ(selector.status().code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(MessageOf(selector.status()), HasSubstr("selects no labels; write KEY=VALUE"));
  }
}

}  // namespace
}  // namespace qrm::manager::cli::label_selector_test
