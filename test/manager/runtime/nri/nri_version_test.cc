// The events that are safe to request from each runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/runtime/nri/nri_wire.h"

namespace qrm::manager::nri_version_test {
namespace {

constexpr int32_t kCreateContainer = 0x8;
constexpr int32_t kKnownToAll = 0x7ff;  // to NRI 0.2 and each that came later

TEST(SubscribedEventsTest, AreKnownToEveryRuntime) {
  EXPECT_TRUE(SubscribedEvents() & kCreateContainer);
  EXPECT_EQ(SubscribedEvents() & ~kKnownToAll, 0);
}

TEST(KnownProblemTest, WarnsOfContainerdThatDeadlocks) {
  EXPECT_NE(KnownProblemOf({"containerd", "v1.7.15"}), "");
  EXPECT_EQ(KnownProblemOf({"containerd", "v1.7.16"}), "");
  EXPECT_EQ(KnownProblemOf({"cri-o", "1.26.0"}), "");
}

}  // namespace
}  // namespace qrm::manager::nri_version_test
