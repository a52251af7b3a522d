#include "manager/pods/runtime_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::runtime_mode_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RuntimeModeTest, OnlyNriMakesTheNodeReady) {
  RuntimeStatus status;
  AddRuntimeMode({.connected = true}, {}, status);
  EXPECT_EQ(status.mode, RuntimeMode::kNri);
  EXPECT_THAT(status.not_ready_reasons, IsEmpty());
  EXPECT_THAT(status.degraded_reasons, IsEmpty());
}

TEST(RuntimeModeTest, ObserverMakesItReadyButDegraded) {
  RuntimeStatus status;
  AddRuntimeMode({.problem = "no socket"}, {.active = true, .working = true}, status);
  EXPECT_EQ(status.mode, RuntimeMode::kObserver);
  EXPECT_THAT(status.not_ready_reasons, IsEmpty());
  EXPECT_THAT(
      status.degraded_reasons,
      ElementsAre(HasSubstr("pinned after their creation, by updates over CRI: no socket")));
}

TEST(RuntimeModeTest, NeitherMakesItNotReadyForBothReasons) {
  RuntimeStatus status;
  AddRuntimeMode({.problem = "no socket"}, {.active = true, .problem = "connection refused"},
                 status);
  EXPECT_EQ(status.mode, RuntimeMode::kNone);
  EXPECT_THAT(status.not_ready_reasons,
              ElementsAre(HasSubstr("no socket"), HasSubstr("connection refused")));
}

}  // namespace
}  // namespace qrm::manager::runtime_mode_test
