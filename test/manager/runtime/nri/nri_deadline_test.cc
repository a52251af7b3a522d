// Answers are in time, also when the decision or the runtime is late.
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/runtime/nri/nri_fixture.h"

namespace qrm::manager::nri_deadline_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::NriContainer;
using test::NriPod;
using ::testing::HasSubstr;

namespace wire = ::nri::pkg::api::v1alpha1;

class NriDeadlineTest : public test::NriFixture {};

TEST_F(NriDeadlineTest, RejectsCreationInTimeWithoutADecision) {
  AdjustmentReply kept;
  events_.on_create = [&](const RuntimeContainer&, AdjustmentReply reply) {
    kept = std::move(reply);
  };
  options_.reply_timeout = milliseconds(50);
  Attach();
  const Status status = runtime_->CreateContainer(NriPod("1"), NriContainer("web")).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("container web of pod default/pod-1"));
  kept(ContainerAdjustment{});  // too late: dropped
  EXPECT_TRUE(runtime_->Call("Shutdown", "").ok());
  EXPECT_EQ(runtime_->connections(), 1);
}

TEST_F(NriDeadlineTest, AnswersFromAnotherThreadWhileTheLoopIsBusy) {
  std::promise<void> answered;
  std::thread decider;
  events_.on_create = [&](const RuntimeContainer&, AdjustmentReply reply) {
    decider = std::thread([reply = std::move(reply)] { reply(ContainerAdjustment{}); });
    answered.get_future().wait();
  };
  Attach();
  EXPECT_TRUE(Create().ok());
  answered.set_value();
  loop_->Run([] {});  // on_create has returned
  decider.join();
}

TEST_F(NriDeadlineTest, KeepsWithinTheRuntimesOwnLimit) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply&) {};
  Attach({.request_timeout_ms = 300});
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(Create().status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(1000));
  EXPECT_EQ(runtime_->connections(), 1);
}

TEST_F(NriDeadlineTest, KeepsWithinTheTimeThatTheCallHas) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply&) {};
  Attach();
  for (const milliseconds left : {milliseconds(1), milliseconds(300)}) {
    ttrpc::Request request;
    request.set_service("nri.pkg.api.v1alpha1.Plugin");
    request.set_method("CreateContainer");
    request.set_timeout_nano(std::chrono::nanoseconds(left).count());
    const auto before = steady_clock::now();
    EXPECT_EQ(runtime_->CallRaw(request).status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_LT(steady_clock::now() - before, milliseconds(1000));
  }
}

TEST_F(NriDeadlineTest, TakesTimesThatMakeNoSense) {
  Attach();
  for (const int64_t nanoseconds : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    ttrpc::Request request;
    request.set_service("nri.pkg.api.v1alpha1.Plugin");
    request.set_method("CreateContainer");
    request.set_timeout_nano(nanoseconds);
    EXPECT_TRUE(runtime_->CallRaw(request).ok()) << nanoseconds;
  }
}

TEST_F(NriDeadlineTest, LetsUpdatePassWithoutADecision) {
  events_.on_update = [](const LinuxResources&, const UpdatesReply&) {};
  options_.reply_timeout = milliseconds(50);
  Attach();
  const StatusOr<std::string> response = runtime_->Call("UpdateContainer", "");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(*response, "");
}

TEST_F(NriDeadlineTest, AnswersOthersWhileACreationWaits) {
  AdjustmentReply kept;
  std::promise<void> asked;
  events_.on_create = [&](const RuntimeContainer&, AdjustmentReply reply) {
    kept = std::move(reply);
    asked.set_value();
  };
  Attach();
  std::thread caller([&] { EXPECT_TRUE(Create("slow").ok()); });
  asked.get_future().wait();
  EXPECT_TRUE(runtime_->StateChange(wire::RUN_POD_SANDBOX, NriPod("2")).ok());
  kept(ContainerAdjustment{});
  caller.join();
}

TEST_F(NriDeadlineTest, ReportsHowLongAnswersTook) {
  std::promise<NriAnswer> first;
  std::promise<NriAnswer> second;
  options_.reply_timeout = milliseconds(300);
  options_.on_answer = [&](const NriAnswer& answer) {
    if (answer.call == "CreateContainer") {
      (answer.decided ? first : second).set_value(answer);
    }
  };
  Attach();
  EXPECT_TRUE(Create().ok());
  EXPECT_LT(first.get_future().get().took, milliseconds(300));
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply&) {};
  EXPECT_FALSE(Create().ok());
  EXPECT_GE(second.get_future().get().took, milliseconds(300));
}

TEST_F(NriDeadlineTest, StopsWithAnswerDue) {
  AdjustmentReply kept;
  std::promise<void> asked;
  events_.on_create = [&](const RuntimeContainer&, AdjustmentReply reply) {
    kept = std::move(reply);
    asked.set_value();
  };
  Attach();
  std::thread caller([&] { (void)Create(); });
  asked.get_future().wait();
  loop_->Run([this] { plugin_.reset(); });
  kept(ContainerAdjustment{});
  caller.join();
  EXPECT_NE(events_.log().back(), "disconnected");
}

}  // namespace
}  // namespace qrm::manager::nri_deadline_test
