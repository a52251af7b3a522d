// How much of a pod's labels and annotations is kept.
#include "api/pod_texts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::pod_texts_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(PodTextsTest, CutsLongValuesSoThatNobodyTakesThemForTheWhole) {
  const StringMap all = {{"long", std::string(4097, 'x')}, {"short", std::string(4096, 'y')}};
  EXPECT_THAT(Bounded(all), ElementsAre(Pair("long", std::string(160, 'x') + "... (4097 bytes)"),
                                        Pair("short", std::string(4096, 'y'))));
}

TEST(PodTextsTest, KeepsALimitedAmountInTheOrderOfTheKeys) {
  StringMap all;
  for (int i = 0; i < 100'000; ++i) {
    all.emplace(fmt::format("key-{:06}", i), "0123456789");
  }
  const StringMap kept = Bounded(all);
  EXPECT_EQ(kept.size(), (16 << 10) / 20);
  EXPECT_TRUE(kept.contains("key-000000"));
  EXPECT_EQ(Bounded(kept), kept);
}

TEST(PodTextsTest, LeavesOutWhatTheRuntimeAdds) {
  const StringMap all = {
      {"io.kubernetes.cri.sandbox-id", "x"}, {"io.kubernetes.pod.uid", "x"}, {"team", "a"}};
  EXPECT_THAT(PodsOwn(all), ElementsAre(Pair("team", "a")));
}

}  // namespace
}  // namespace qrm::pod_texts_test
