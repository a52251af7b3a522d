#include <gmock/gmock.h>

#include "plugins/sdk/held_list.h"

namespace qrm::sdk::recent_changes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

const ContainerKey kA{"a", "main"};
const ContainerKey kB{"b", "main"};

TEST(RecentChangesTest, ReportsWhatWasNotedSinceThen) {
  RecentChanges changes;
  changes.Note(kA);
  const std::string then = changes.now();
  EXPECT_THAT(changes.Since(then), Optional(IsEmpty()));
  changes.Note(kB);
  changes.Note(kB);
  EXPECT_THAT(changes.Since(then), Optional(ElementsAre(kB)));
}

TEST(RecentChangesTest, ForgetsOldChanges) {
  RecentChanges changes(2);
  const std::string then = changes.now();
  changes.Note(kA);
  changes.Note(kB);
  EXPECT_THAT(changes.Since(then), Optional(ElementsAre(kA, kB)));
  changes.Note(kB);
  EXPECT_EQ(changes.Since(then), std::nullopt);
}

TEST(RecentChangesTest, KnowsNothingOfMomentsThatItDidNotName) {
  RecentChanges changes;
  const RecentChanges other;
  EXPECT_EQ(changes.Since(other.now()), std::nullopt) << "as after a restart of the plugin";
  for (const std::string text : {"", "1", "x.0"}) {
    EXPECT_EQ(changes.Since(text), std::nullopt) << text;
  }
  const std::string now = changes.now();
  for (const std::string tail : {"1", "x", "-"}) {
    EXPECT_EQ(changes.Since(now + tail), std::nullopt) << "the future: " << now + tail;
  }
}

}  // namespace
}  // namespace qrm::sdk::recent_changes_test
