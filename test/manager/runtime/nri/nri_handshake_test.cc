// Registration, configuration and synchronization.
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/runtime/nri/nri_fixture.h"
#include "test/support/await.h"

namespace qrm::manager::nri_handshake_test {
namespace {

using std::chrono::milliseconds;
using test::Await;
using test::NriContainer;
using test::NriPod;
using test::ScriptedRuntime;
using test::ScriptedRuntimeOptions;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NriHandshakeTest : public test::NriFixture {};

TEST_F(NriHandshakeTest, RegistersByNameAndIndex) {
  Attach();
  EXPECT_EQ(runtime_->registration().plugin_name(), "qrm");
  EXPECT_EQ(runtime_->registration().plugin_idx(), "90");
  EXPECT_THAT(events_.log(), ElementsAre("connected v1.7.24", "synchronize"));
  const NriStatus status = plugin_->GetStatus();
  EXPECT_TRUE(status.connected);
  EXPECT_EQ(status.runtime.name, "containerd");
  EXPECT_EQ(status.connects, 1U);
}

TEST_F(NriHandshakeTest, IsTakenOnByRuntimesOfEveryAge) {
  for (const auto& [version, known] :
       std::vector<std::pair<std::string, int32_t>>{{"v1.7.16", 0x7ff}, {"v2.2.0", 0x3fff}}) {
    Attach({.version = version, .known_events = known});
    EXPECT_NE(runtime_->subscribed_events() & 0x8, 0) << version;
    StopPlugin();
    runtime_.reset();
  }
}

TEST_F(NriHandshakeTest, TakesConfigureBeforeItsRegistrationIsAnswered) {
  Attach({.registration = ScriptedRuntimeOptions::Registration::kAnsweredLast});
  EXPECT_TRUE(Create().ok());
  EXPECT_TRUE(plugin_->GetStatus().connected);
}

TEST_F(NriHandshakeTest, SaysWhyTheRuntimeRejectsItAndTriesAgain) {
  options_.backoff_first = milliseconds(1);
  StartRuntime({.registration = ScriptedRuntimeOptions::Registration::kRefused});
  StartPlugin();
  ASSERT_TRUE(Await([&] { return runtime_->connections() >= 3; }));
  EXPECT_THAT(plugin_->GetStatus().problem,
              AllOf(HasSubstr("cannot register at"), HasSubstr("the script says no")));
  EXPECT_THAT(events_.log(), IsEmpty());
}

TEST_F(NriHandshakeTest, NamesTheSocketBeforeItsFirstAttemptHasEnded) {
  boost::asio::io_context io;
  const NriPlugin plugin(io, {.socket = "/run/nri.sock"}, events_);
  EXPECT_THAT(plugin.GetStatus().problem,
              AllOf(HasSubstr("/run/nri.sock"), HasSubstr("not ended yet")));
}

TEST_F(NriHandshakeTest, NeverSubscribesToAllEvents) {  // which a mask of 0 means
  Attach();
  EXPECT_NE(runtime_->subscribed_events(), 0);
  EXPECT_EQ(runtime_->subscribed_events() & ~0x7ff, 0);
}

TEST_F(NriHandshakeTest, SynchronizesFromChunksAsFromOne) {
  ScriptedRuntimeOptions script{.synchronize_chunks = 3};
  for (int i = 0; i < 7; ++i) {
    script.pods.push_back(NriPod(std::to_string(i)));
    script.containers.push_back(NriContainer(std::to_string(i)));
  }
  events_.sync_updates = {{.container_id = "id-3", .resources = {.cpuset_cpus = "0-1"}}};
  Attach(script);
  EXPECT_THAT(events_.pods(), SizeIs(7));
  EXPECT_THAT(events_.containers(), SizeIs(7));
  const auto responses = runtime_->synchronize_responses();
  ASSERT_THAT(responses, SizeIs(3));
  EXPECT_THAT(responses[0].update(), IsEmpty());
  EXPECT_THAT(responses[1].update(), IsEmpty());
  ASSERT_THAT(responses[2].update(), SizeIs(1));
  EXPECT_EQ(responses[2].update(0).linux().resources().cpu().cpus(), "0-1");
}

TEST_F(NriHandshakeTest, ForgetsTheChunksOfASynchronizationThatWasCut) {
  ScriptedRuntimeOptions script{.synchronize_chunks = 2, .cut_after_chunks = 1};
  script.pods = {NriPod("1"), NriPod("2")};
  Attach(script);
  EXPECT_EQ(runtime_->connections(), 2);
  EXPECT_THAT(events_.pods(), SizeIs(2));
}

TEST_F(NriHandshakeTest, ConnectsAgainAfterAPodThatItCannotRead) {
  options_.backoff_first = milliseconds(1);
  StartRuntime({.synchronize_chunks = 2});
  std::atomic<int> taken = 0;
  runtime_->SetInventory([&taken]() -> ScriptedRuntime::Inventory {
    const std::string readable = NriPod("1").SerializeAsString();
    const std::string unreadable = "\xff";
    switch (++taken) {
      case 1:
        return {.pods = {unreadable, readable}, .containers = {}};  // more follows
      case 2:
        return {.pods = {readable, unreadable}, .containers = {}};  // in the last message
      default:
        return {.pods = {readable}, .containers = {}};
    }
  });
  StartPlugin();
  ASSERT_TRUE(runtime_->WaitForSynchronizations(1));
  EXPECT_EQ(taken, 3);
  EXPECT_THAT(events_.pods(), SizeIs(1));
}

TEST_F(NriHandshakeTest, ReportsStaleAndRepeatedObjectsAsTheyCome) {
  ScriptedRuntimeOptions script;
  script.pods = {NriPod("1"), NriPod("1")};
  script.containers = {NriContainer("a"), NriContainer("a"), NriContainer("of-no-pod")};
  Attach(script);
  EXPECT_THAT(events_.pods(), SizeIs(2));
  EXPECT_THAT(events_.containers(), SizeIs(3));
}

TEST_F(NriHandshakeTest, SynchronizesInTimeWithoutADecision) {
  events_.replies_to_synchronize = false;
  options_.reply_timeout = milliseconds(30);
  Attach();
  EXPECT_TRUE(Create().ok());
}

TEST_F(NriHandshakeTest, GivesUpOnRuntimeThatStaysSilent) {
  boost::asio::io_context io;
  const boost::asio::local::stream_protocol::acceptor silent(io, {dir_ / "nri.sock"});
  options_.handshake_timeout = milliseconds(30);
  StartPlugin();
  EXPECT_TRUE(Await([&] {
    return plugin_->GetStatus().problem.find("did not synchronize within 30 ms") !=
           std::string::npos;
  }));
}

TEST_F(NriHandshakeTest, GivesUpOnRuntimeThatRejectsItsEvents) {
  options_.handshake_timeout = milliseconds(30);
  options_.backoff_first = milliseconds(1);
  StartRuntime({.known_events = 0});  // rejects every plugin
  StartPlugin();
  EXPECT_TRUE(Await([&] { return runtime_->connections() >= 3; }));
  EXPECT_FALSE(plugin_->GetStatus().connected);
  EXPECT_EQ(plugin_->GetStatus().disconnects, 0U);
}

}  // namespace
}  // namespace qrm::manager::nri_handshake_test
