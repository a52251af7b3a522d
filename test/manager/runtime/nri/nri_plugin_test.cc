// The answers to creations.
#include "manager/runtime/nri/nri_plugin.h"

#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/runtime/nri/nri_fixture.h"

namespace qrm::manager::nri_plugin_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace wire = ::nri::pkg::api::v1alpha1;

class NriAdjustmentTest : public test::NriFixture {};

TEST_F(NriAdjustmentTest, PutsAdjustmentInPlace) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply& reply) {
    reply(ContainerAdjustment{
        .resources = {.cpu_quota_us = -1, .cpuset_cpus = "2-21", .cpuset_mems = "0"},
        .envs = {{"NIC", "fd::20"}},
        .annotations = {{"netns", "/ns1"}},
        .mounts = {{.container_path = "/in", .host_path = "/out", .read_only = true}},
        .devices = {{.container_path = "/dev/n", .host_path = "/dev/null", .permissions = "rw"}}});
  };
  Attach();
  const auto response = Create();
  ASSERT_TRUE(response.ok()) << response.status();
  const wire::ContainerAdjustment& adjust = response->adjust();
  EXPECT_EQ(adjust.linux().resources().cpu().cpus(), "2-21");
  EXPECT_EQ(adjust.linux().resources().cpu().mems(), "0");
  EXPECT_EQ(adjust.linux().resources().cpu().quota().value(), -1);
  EXPECT_EQ(adjust.env(0).key(), "NIC");
  EXPECT_EQ(adjust.annotations().at("netns"), "/ns1");
  EXPECT_THAT(adjust.mounts(0).options(), ElementsAre("rbind", "rprivate", "ro"));
  EXPECT_EQ(adjust.linux().devices(0).major(), 1);
  EXPECT_EQ(adjust.linux().devices(0).minor(), 3);
}

TEST_F(NriAdjustmentTest, ClaimsNoFieldThatIsNotSet) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply& reply) {
    reply(ContainerAdjustment{.resources = {.cpuset_cpus = "0"}});
  };
  Attach();
  const auto response = Create();
  ASSERT_TRUE(response.ok());
  const wire::LinuxCPU& cpu = response->adjust().linux().resources().cpu();
  EXPECT_FALSE(cpu.has_shares() || cpu.has_quota() || cpu.has_period());
  EXPECT_FALSE(response->adjust().linux().resources().has_memory());
}

TEST_F(NriAdjustmentTest, FailsCreationWithTheHandlersSentence) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply& reply) {
    reply(Errorf(StatusCode::kResourceExhausted, "cannot admit: no room"));
  };
  Attach();
  const Status status = Create().status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "cannot admit: no room");
  EXPECT_TRUE(plugin_->GetStatus().connected);
}

TEST_F(NriAdjustmentTest, FailsCreationForDeviceThatIsNotThere) {
  events_.on_create = [](const RuntimeContainer&, const AdjustmentReply& reply) {
    reply(ContainerAdjustment{
        .devices = {{.container_path = "/dev/x", .host_path = "/dev/not-there"}}});
  };
  Attach();
  const Status status = Create().status();
  EXPECT_THAT(MessageOf(status), HasSubstr("/dev/not-there"));
}

TEST_F(NriAdjustmentTest, FailsCreationForKeysThatMeanRemoval) {
  const ContainerAdjustment removals[] = {
      {.envs = {{"-PATH", ""}}},
      {.envs = {{"", "x"}}},
      {.annotations = {{"-key", ""}}},
      {.mounts = {{.container_path = "-/data", .host_path = "/tmp"}}},
      {.devices = {{.container_path = "-/dev/null", .host_path = "/dev/null"}}}};
  Attach();
  for (const ContainerAdjustment& removal : removals) {
    Give(removal);
    const Status status = Create().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr("reads as a removal; check the plugin"));
  }
}

TEST_F(NriAdjustmentTest, LeavesAnEmptyCpusetOut) {  // it would mean "no change"
  Give({.resources = {.cpuset_cpus = "", .cpuset_mems = "0"}});
  Attach();
  const auto response = Create();
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->adjust().linux().resources().cpu().cpus(), "");
  EXPECT_EQ(response->adjust().linux().resources().cpu().mems(), "0");
}

TEST_F(NriAdjustmentTest,
       LeavesOtherContainersToTheReconciler) {  // a failure here would be logged only
  Give({.resources = {.cpuset_cpus = "0"}});
  Attach();
  const auto response = Create();
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->update(), IsEmpty());
}

TEST_F(NriAdjustmentTest, TakesReplyFromAnotherThread) {
  std::thread other;
  events_.on_create = [&](const RuntimeContainer&, const AdjustmentReply& reply) {
    other = std::thread([reply] { reply(ContainerAdjustment{.envs = {{"A", "b"}}}); });
  };
  Attach();
  const auto response = Create();
  loop_->Run([] {});  // on_create has returned
  other.join();
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->adjust().env(), SizeIs(1));
}

TEST(NriOptionsTest, RejectsWhatNoRuntimeTakes) {
  boost::asio::io_context io;
  test::RecordedEvents events;
  for (const NriOptions& options :
       {NriOptions{.index = "9"}, NriOptions{.index = "9x"}, NriOptions{.name = ""},
        NriOptions{.name = "a/b"}, NriOptions{.socket = ""},
        NriOptions{.socket = "/" + std::string(200, 'x')}}) {
    EXPECT_EQ(NriPlugin(io, options, events).Start().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace qrm::manager::nri_plugin_test
