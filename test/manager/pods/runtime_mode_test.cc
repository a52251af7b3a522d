#include "manager/pods/runtime_mode.h"

#include <chrono>
#include <string>
#include <vector>

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

class CriFaultsTest : public testing::Test {
 protected:
  std::vector<std::string> Faults() const {
    RuntimeStatus status;
    AddCriFaults(nri_, cri_, status);
    return status.degraded_reasons;
  }

  const std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  NriStatus nri_{.connected = true, .runtime = {"containerd", "v1.7.24"}, .last_sync = now_};
  CriStatus cri_{.runtime = {"containerd", "v1.7.24"}, .asked_at = now_ + std::chrono::seconds(1)};
};

TEST_F(CriFaultsTest, AreNoneWhileTheRuntimeOfNriAnswers) {
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(CriFaultsTest, AreToldWhenCriDoesNotAnswerBesideNri) {
  cri_.problem = "no answer; restart the runtime";
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("do not reach the runtime: no answer; restart")));
  nri_.connected = false;
  EXPECT_THAT(Faults(), IsEmpty()) << "the mode's reasons have it";
}

TEST_F(CriFaultsTest, NameBothRuntimesWhenCriIsOfAnotherOne) {
  cri_.runtime = {"cri-o", "1.30.0"};
  EXPECT_THAT(Faults(), ElementsAre(testing::AllOf(HasSubstr("NRI is connected to containerd"),
                                                   HasSubstr("cri-o 1.30.0 answers over CRI"),
                                                   HasSubstr("set cri-socket"))));
}

TEST_F(CriFaultsTest, WaitForAnAnswerOfTheRuntimeThatReplacedAnother) {
  cri_.runtime = {"containerd", "v1.7.0"};
  cri_.asked_at = now_ - std::chrono::seconds(1);
  EXPECT_THAT(Faults(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::runtime_mode_test
