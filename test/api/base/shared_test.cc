#include "api/base/shared.h"

#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/interner.h"
#include "api/base/shared_text.h"

namespace qrm::shared_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

using Map = std::map<std::string, std::string>;

const std::string kUid = "6f2e3a7c-0000-4000-8000-000000000001";

TEST(SharedTest, CopiesAreOneUntilOneIsEdited) {
  Shared<Map> one = {{"app", "web"}};
  const Shared<Map> other = one;
  EXPECT_TRUE(one.SharesWith(other));
  one.Edit()["app"] = "db";
  EXPECT_FALSE(one.SharesWith(other));
  EXPECT_THAT(*one, ElementsAre(Pair("app", "db")));
  EXPECT_THAT(*other, ElementsAre(Pair("app", "web")));
}

TEST(SharedTest, TheOnlyOwnerEditsItInPlace) {
  Shared<Map> one = {{"app", "web"}};
  const Map* const before = &*one;
  one.Edit()["tier"] = "front";
  EXPECT_EQ(&*one, before);
}

TEST(SharedTest, EmptyOneTakesNoMemoryAndEqualsAnyOther) {
  const Shared<Map> none;
  const Shared<Map> emptied{Map()};
  EXPECT_EQ(none.use_count() + emptied.use_count(), 0U);
  EXPECT_EQ(none, emptied);
  EXPECT_TRUE(none.empty());
}

TEST(SharedTest, EqualsWhatSaysTheSame) {
  const Shared<Map> one = {{"app", "web"}};
  EXPECT_EQ(one, Shared<Map>(Map{{"app", "web"}}));
  EXPECT_EQ(one, (Map{{"app", "web"}}));
  EXPECT_NE(one, Shared<Map>());
}

TEST(SharedTextTest, ReplacesAString) {
  const SharedText text = kUid;
  const std::string& same = text;
  EXPECT_EQ(same, kUid);
  EXPECT_EQ(text, kUid);
  EXPECT_EQ(text, std::string_view(kUid));
  EXPECT_EQ("pod " + text + "!", "pod " + kUid + "!");
  EXPECT_EQ(fmt::format("{:>40}", text), fmt::format("{:>40}", kUid));
  EXPECT_EQ((std::map<std::string, int>{{kUid, 1}}.at(text)), 1);
}

TEST(SharedTextTest, IsOrderedAsTheStringIs) {
  EXPECT_LT(SharedText("a"), SharedText("b"));
  EXPECT_LT(SharedText(), SharedText("a"));
  EXPECT_LT(SharedText("a"), "aa");
  EXPECT_GT(SharedText("b"), std::string("a"));
}

TEST(InternerTest, EqualValuesBecomeOne) {
  Interner<SharedText> texts;
  const SharedText one = texts.Intern(kUid);
  const SharedText other = texts.Intern(kUid);
  EXPECT_EQ(&one.str(), &other.str());
  EXPECT_NE(&texts.Intern("another").str(), &one.str());
}

TEST(InternerTest, ForgetsUnusedValues) {
  Interner<SharedText> texts;
  const SharedText kept = texts.Intern("kept");
  for (int i = 0; i < 200; ++i) {
    texts.Intern("other " + std::to_string(i));
  }
  EXPECT_EQ(&texts.Intern("kept").str(), &kept.str());
  EXPECT_LT(texts.size(), 200U);
}

TEST(InternerTest, TwoInternersForgetWhatOnlyTheyKeep) {
  Interner<SharedText> asked;
  Interner<SharedText> recorded;
  for (int pod = 0; pod < 200'000; ++pod) {
    recorded.Intern(asked.Intern(fmt::format("label of pod {}", pod)));
  }
  EXPECT_LT(asked.size(), 1000U);
  EXPECT_LT(recorded.size(), 1000U);
}

TEST(InternerTest, AnInternerThatEndsCountsNoMore) {
  Interner<SharedText> stays;
  {
    Interner<SharedText> ends;
    for (int text = 0; text < 1000; ++text) {
      stays.Intern(ends.Intern(fmt::format("text {}", text)));
    }
  }
  for (int text = 0; text < 4000; ++text) {
    stays.Intern(SharedText(fmt::format("later text {}", text)));
  }
  EXPECT_LT(stays.size(), 1000U);
}

}  // namespace
}  // namespace qrm::shared_test
