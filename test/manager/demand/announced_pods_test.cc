// Specs that were announced before the pod was created.
#include <string>

#include <gtest/gtest.h>

#include "manager/demand/spec_source.h"

namespace qrm::manager::announced_pods_test {
namespace {

PodSpec Spec(const std::string& uid, const std::string& name = "pod") {
  return {.uid = uid, .pod_namespace = "default", .name = name};
}

TEST(AnnouncedPodsTest, FindsAPodByItsUidAsItWasAnnouncedLast) {
  AnnouncedPods pods;
  EXPECT_EQ(pods.Find("a"), nullptr);
  pods.Add(Spec("a", "first"));
  pods.Add(Spec("b"));
  pods.Add(Spec("a", "second"));
  ASSERT_NE(pods.Find("a"), nullptr);
  EXPECT_EQ(pods.Find("a")->name, "second");
}

TEST(AnnouncedPodsTest, ForgetsTheOldestBeyondItsBound) {
  AnnouncedPods pods;
  for (std::size_t i = 0; i <= AnnouncedPods::kMaxPods; ++i) {
    pods.Add(Spec("uid-" + std::to_string(i)));
  }
  EXPECT_EQ(pods.Find("uid-0"), nullptr);
  EXPECT_NE(pods.Find("uid-1"), nullptr);
  EXPECT_NE(pods.Find("uid-" + std::to_string(AnnouncedPods::kMaxPods)), nullptr);
}

TEST(AnnouncedPodsTest, LooksForNoPod) {
  AnnouncedPods pods;
  EXPECT_FALSE(pods.can_look());
  bool looked = false;
  pods.AfterLooking("a", Deadline::max(), [&looked] { looked = true; });
  EXPECT_TRUE(looked);
}

}  // namespace
}  // namespace qrm::manager::announced_pods_test
