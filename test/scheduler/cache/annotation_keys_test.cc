#include "scheduler/cache/annotation_keys.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::scheduler::annotation_keys_test {
namespace {

using testing::ElementsAre;
using testing::Key;
using testing::Pair;

TEST(AnnotationKeysTest, KeepsWhatIsReadByItsKeyOrAGlob) {
  AnnotationKeys keys;
  keys.Read("test/one");
  keys.Read("*.resources.test/*");
  EXPECT_THAT(keys.KeptOf({{"test/one", "1"},
                           {"test/other", "2"},
                           {"rdt.resources.test/pod", "3"},
                           {"notes", "4"}}),
              ElementsAre(Pair("rdt.resources.test/pod", "3"), Pair("test/one", "1")));
}

TEST(AnnotationKeysTest, CutsAsTheNodeDoesWhatTenantsWriteButNoDecision) {
  AnnotationKeys keys;
  keys.Read("long");
  keys.ReadDecision("decided");
  const std::string text(5000, 'x');
  EXPECT_THAT(
      keys.KeptOf({{"long", text}, {"decided", text}}),
      ElementsAre(Pair("decided", text), Pair("long", std::string(160, 'x') + "... (5000 bytes)")));
  EXPECT_TRUE(keys.KeptOf({{"decided", std::string(70'000, 'x')}}).empty());
}

TEST(AnnotationKeysTest, ReportsWhetherMoreIsReadUpToALimit) {
  AnnotationKeys keys;
  for (std::size_t i = 0; i < AnnotationKeys::kMostKeys; ++i) {
    EXPECT_TRUE(keys.Read(fmt::format("key-{}", i)));
    EXPECT_FALSE(keys.Read(fmt::format("key-{}", i)));
  }
  EXPECT_FALSE(keys.Read("one-more"));
  EXPECT_THAT(keys.KeptOf({{"key-7", ""}, {"one-more", ""}}), ElementsAre(Key("key-7")));
}

}  // namespace
}  // namespace qrm::scheduler::annotation_keys_test
