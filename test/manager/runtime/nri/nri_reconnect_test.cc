// Connections that end, and the next ones.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/runtime/nri/nri_fixture.h"
#include "test/support/await.h"

namespace qrm::manager::nri_reconnect_test {
namespace {

using std::chrono::milliseconds;
using test::Await;
using test::NriPod;
using test::ScriptedRuntimeOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace wire = ::nri::pkg::api::v1alpha1;

class NriReconnectTest : public test::NriFixture {};

TEST_F(NriReconnectTest, AttachesAgainAfterItWasCutOff) {
  Attach();
  runtime_->Disconnect();
  ASSERT_TRUE(runtime_->WaitForSynchronizations(2));
  EXPECT_TRUE(Await([&] { return plugin_->GetStatus().connected; }));
  EXPECT_THAT(events_.log(), ElementsAre("connected v1.7.24", "synchronize", "disconnected",
                                         "connected v1.7.24", "synchronize"));
  EXPECT_EQ(plugin_->GetStatus().connects, 2U);
  EXPECT_EQ(plugin_->GetStatus().disconnects, 1U);
  EXPECT_EQ(plugin_->GetStatus().kicked, 0U);
}

TEST_F(NriReconnectTest, CountsBeingCutOffWhileTheRuntimeWaits) {
  std::promise<void> asked;
  events_.on_create = [&](const RuntimeContainer&, const AdjustmentReply&) { asked.set_value(); };
  Attach();
  std::thread caller([&] { (void)Create(); });
  asked.get_future().wait();
  runtime_->Disconnect();
  caller.join();
  ASSERT_TRUE(runtime_->WaitForSynchronizations(2));
  EXPECT_EQ(plugin_->GetStatus().kicked, 1U);
}

TEST_F(NriReconnectTest, AttachesOnceTheRuntimeIsThere) {
  options_.backoff_first = milliseconds(5);
  options_.backoff_last = milliseconds(20);
  StartPlugin();
  EXPECT_TRUE(Await([&] {  // the first attempt has ended
    return plugin_->GetStatus().problem.find("enable NRI") != std::string::npos;
  }));
  EXPECT_THAT(plugin_->GetStatus().problem, HasSubstr(dir_ / "nri.sock"));
  StartRuntime();
  EXPECT_TRUE(runtime_->WaitForSynchronizations(1));
}

TEST_F(NriReconnectTest, AttachesAgainAfterRuntimeRestart) {
  options_.backoff_first = milliseconds(5);
  options_.backoff_last = milliseconds(20);
  Attach();
  runtime_.reset();
  StartRuntime({.version = "v1.7.25"});
  ASSERT_TRUE(runtime_->WaitForSynchronizations(1));
  EXPECT_TRUE(Await([&] { return plugin_->GetStatus().runtime.version == "v1.7.25"; }));
}

TEST_F(NriReconnectTest, ReceivesEverythingAgainAfterEachConnect) {
  ScriptedRuntimeOptions script;
  script.pods = {NriPod("1")};
  Attach(script);
  runtime_->SetInventory(
      [] { return test::ScriptedRuntime::Inventory{{NriPod("2").SerializeAsString()}, {}}; });
  runtime_->Disconnect();
  ASSERT_TRUE(runtime_->WaitForSynchronizations(2));
  ASSERT_THAT(events_.pods(), SizeIs(1));
  EXPECT_EQ(events_.pods()[0].uid, "2");
}

TEST_F(NriReconnectTest, LeavesNothingInMemoryWhenTheLoopStopsWithIt) {
  const auto held = std::make_shared<int>();
  const auto nothing = options_.on_answer;
  options_.on_answer = [held](const NriAnswer&) {};
  Attach();
  loop_->Run([this] {
    plugin_.reset();
    loop_->io().stop();
  });
  loop_.reset();
  options_.on_answer = nothing;
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(NriReconnectTest, ReconnectsWhenTheAnswerThatIsDueIsOut) {
  std::promise<AdjustmentReply> asked;
  events_.on_create = [&](const RuntimeContainer&, const AdjustmentReply& reply) {
    asked.set_value(reply);
  };
  Attach();
  std::promise<StatusOr<wire::CreateContainerResponse>> created;
  std::thread caller([&] { created.set_value(Create()); });
  const AdjustmentReply reply = asked.get_future().get();
  loop_->Run([this] { plugin_->Reconnect(Errorf(StatusCode::kAborted, "the test wants it")); });
  EXPECT_EQ(runtime_->connections(), 1);
  reply(ContainerAdjustment{.envs = {{"LANE", "3"}}});
  const auto answer = created.get_future().get();
  caller.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->adjust().env(0).value(), "3");
  EXPECT_TRUE(runtime_->WaitForSynchronizations(2));
}

TEST_F(NriReconnectTest, WaitsLongerEachTimeTheRuntimeCutsItOffAtOnce) {
  options_.backoff_first = milliseconds(40);
  Attach();
  const auto begin = std::chrono::steady_clock::now();
  for (int times = 2; times <= 4; ++times) {
    runtime_->Disconnect();
    ASSERT_TRUE(runtime_->WaitForSynchronizations(times));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40 + 80));
}

TEST_F(NriReconnectTest, AttachesAtOnceAfterAConnectionThatLasted) {
  options_.backoff_first = milliseconds(1);
  options_.backoff_last = std::chrono::minutes(10);  // reached by 18 failures in a row
  Attach();
  for (int times = 2; times <= 20; ++times) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(Await(
        [&] { return std::chrono::steady_clock::now() - begin > 2 * options_.backoff_first; }));
    runtime_->Disconnect();
    ASSERT_TRUE(runtime_->WaitForSynchronizations(times));
  }
}

}  // namespace
}  // namespace qrm::manager::nri_reconnect_test
