// A runtime that waits for a daemon which is not ready yet.
#include "manager/runtime/nri/nri_attachment.h"

#include <chrono>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/runtime/nri/nri_fixture.h"
#include "test/support/await.h"

namespace qrm::manager::nri_attachment_test {
namespace {

using std::chrono::milliseconds;
using test::Await;
using test::NriPod;
using test::ScriptedRuntime;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class NriAttachmentTest : public testing::Test {
 protected:
  void TearDown() override {
    loop_.Run([this] { attachment_.reset(); });
  }

  void Attach(milliseconds patience = std::chrono::minutes(1)) {
    loop_.Run([&] {
      attachment_.emplace(loop_.io(), NriOptions{.socket = socket_}, patience);
      ASSERT_EQ(attachment_->Start(), OkStatus());
    });
  }
  bool AwaitConnects(uint64_t count) {
    return Await([&] { return attachment_->plugin().GetStatus().connects == count; });
  }
  bool IsLeftAlone() {
    return runtime_.StateChange(test::nri::RUN_POD_SANDBOX, NriPod("2")).code() ==
           StatusCode::kUnavailable;
  }
  void Deliver() {
    loop_.Run([this] { attachment_->DeliverTo(events_); });
  }

  const test::TempDir dir_;
  const std::string socket_ = dir_ / "nri.sock";
  test::RecordedEvents events_;
  ScriptedRuntime runtime_{socket_, {.pods = {NriPod("1")}}};
  test::LoopThread loop_;
  std::optional<NriAttachment> attachment_;
};

TEST_F(NriAttachmentTest, WhatExistsIsToldBeforeAnybodyHearsAndTheRuntimeWaits) {
  Attach();
  ASSERT_TRUE(AwaitConnects(1));
  EXPECT_EQ(runtime_.synchronizations(), 0);
  Deliver();
  ASSERT_TRUE(runtime_.WaitForSynchronizations(1));
  EXPECT_THAT(events_.log(), ElementsAre("connected v1.7.24", "synchronize"));
  EXPECT_THAT(events_.pods(), SizeIs(1));
}

TEST_F(NriAttachmentTest, ARuntimeThatLeavesMeanwhileIsHeardOnce) {
  Attach();
  ASSERT_TRUE(AwaitConnects(1));
  runtime_.Disconnect();
  ASSERT_TRUE(AwaitConnects(2));
  Deliver();
  ASSERT_TRUE(runtime_.WaitForSynchronizations(1));
  EXPECT_THAT(events_.log(), ElementsAre("connected v1.7.24", "synchronize"));
}

TEST_F(NriAttachmentTest, ARuntimeIsLeftAloneWhenNobodyComesToHear) {
  Attach(milliseconds(1));
  ASSERT_TRUE(Await([this] { return runtime_.connections() > 0 && IsLeftAlone(); }));
  Deliver();
  EXPECT_TRUE(runtime_.WaitForSynchronizations(1));
}

TEST_F(NriAttachmentTest, PatienceCountsForNothingOnceSomebodyHears) {
  loop_.Run([this] {
    attachment_.emplace(loop_.io(), NriOptions{.socket = socket_}, milliseconds(1));
    ASSERT_EQ(attachment_->Start(), OkStatus());
    attachment_->DeliverTo(events_);
  });
  ASSERT_TRUE(runtime_.WaitForSynchronizations(1));
  EXPECT_FALSE(Await([this] { return IsLeftAlone(); }, milliseconds(20)));
}

}  // namespace
}  // namespace qrm::manager::nri_attachment_test
