// How much of a pod's labels and annotations is kept.
#include "api/pod_texts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::pod_texts_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(PodTextsTest, MarksLongValuesAsCut) {
  const StringMap all = {{"long", std::string(4097, 'x')}, {"short", std::string(4096, 'y')}};
  EXPECT_THAT(Bounded(all), ElementsAre(Pair("long", std::string(160, 'x') + "... (4097 bytes)"),
                                        Pair("short", std::string(4096, 'y'))));
}

TEST(PodTextsTest, KeepsALimitedAmountInTheOrderOfTheKeys) {
  StringMap all;
  for (int i = 0; i < 100'000; ++i) {
    all.emplace(fmt::format("key-{:06}", i), std::string(90, 'x'));
  }
  const StringMap kept = Bounded(all);
  EXPECT_EQ(kept.size(), (16 << 10) / 100);
  EXPECT_TRUE(kept.contains("key-000000"));
  EXPECT_EQ(Bounded(kept), kept);
}

TEST(PodTextsTest, KeepsALimitedNumberInTheOrderOfTheKeys) {
  StringMap all = {{"spec.cci.qrm.io/container.a", "*"}};
  for (int i = 0; i < 1'000; ++i) {
    all.emplace(fmt::format("key-{:06}", i), "x");
  }
  const StringMap kept = Bounded(all);
  EXPECT_EQ(kept.size(), 256u + 1);
  EXPECT_TRUE(kept.contains("key-000255"));
  EXPECT_TRUE(kept.contains("spec.cci.qrm.io/container.a")) << "which is counted apart";
}

TEST(PodTextsTest, KeepsTheSettingsOfComputeDrivers) {
  const std::string spec(16 << 10, 's');
  const StringMap all = {{"cci.qrm.io/spec", spec},
                         {"cci.qrm.io/specification", std::string(4097, 'x')},
                         {"much", std::string(4096, 'y')},
                         {"much-more", std::string(4096, 'y')},
                         {"spec.cci.qrm.io/container.a", spec.substr(0, 8 << 10)},
                         {"spec.cci.qrm.io/container.b", spec + "s"},
                         {"spec.cci.qrm.io/container.c", spec}};
  const StringMap kept = Bounded(all);
  EXPECT_EQ(kept.at("cci.qrm.io/spec"), spec);
  EXPECT_EQ(kept.at("spec.cci.qrm.io/container.a"), spec.substr(0, 8 << 10));
  EXPECT_TRUE(IsCut(kept.at("spec.cci.qrm.io/container.b")));
  EXPECT_TRUE(IsCut(kept.at("cci.qrm.io/specification")));
  EXPECT_FALSE(kept.contains("spec.cci.qrm.io/container.c")) << "beyond 32 KiB of specs";
  EXPECT_TRUE(kept.contains("much-more")) << "of which they are no part";
}

TEST(PodTextsTest, ReportsWhatWasCut) {
  for (const std::size_t bytes : {4097UL, 1000000UL}) {
    EXPECT_TRUE(IsCut(Bounded(StringMap{{"a", std::string(bytes, 'x')}}).at("a")));
  }
  for (const std::string& whole : {std::string(180, 'x'), std::string("x... (4097 bytes)"),
                                   std::string(4000, 'x') + " bytes)"}) {
    EXPECT_FALSE(IsCut(whole)) << whole;
  }
}

TEST(PodTextsTest, LeavesOutWhatTheRuntimeAdds) {
  const StringMap all = {
      {"io.kubernetes.cri.sandbox-id", "x"}, {"io.kubernetes.pod.uid", "x"}, {"team", "a"}};
  EXPECT_THAT(PodsOwn(all), ElementsAre(Pair("team", "a")));
}

}  // namespace
}  // namespace qrm::pod_texts_test
