// The runtime's events, by all calls that report them.
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/runtime/nri/nri_fixture.h"

namespace qrm::manager::nri_events_test {
namespace {

using test::NriContainer;
using test::NriPod;
using test::ScriptedRuntimeOptions;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace wire = ::nri::pkg::api::v1alpha1;

class NriEventsTest : public test::NriFixture {};

TEST_F(NriEventsTest, TakesPresentButZeroForUnset) {
  std::promise<LinuxResources> seen;
  events_.on_update = [&](const LinuxResources& requested, const UpdatesReply& reply) {
    seen.set_value(requested);
    reply(std::vector<ContainerUpdate>{
        {.container_id = "id-c",
         .resources = {.cpuset_cpus = "4-5", .hugepage_limit_bytes = {{"2MB", 1}}}}});
  };
  Attach();
  wire::UpdateContainerRequest request;
  *request.mutable_container() = NriContainer("c");
  wire::LinuxResources& resources = *request.mutable_linux_resources();
  resources.mutable_memory()->mutable_limit();
  resources.mutable_cpu()->mutable_shares();
  resources.mutable_cpu()->mutable_quota();
  resources.mutable_cpu()->mutable_period()->set_value(100000);
  const StatusOr<std::string> answer =
      runtime_->Call("UpdateContainer", request.SerializeAsString());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(seen.get_future().get(), (LinuxResources{.cpu_period_us = 100000}));
  wire::UpdateContainerResponse response;
  ASSERT_TRUE(response.ParseFromString(*answer));
  EXPECT_EQ(response.update(0).container_id(), "id-c");
  EXPECT_EQ(response.update(0).linux().resources().cpu().cpus(), "4-5");
  EXPECT_THAT(response.update(0).linux().resources().hugepage_limits(), IsEmpty())
      << "containerd appends them to those the container has";
  EXPECT_TRUE(response.update(0).ignore_failure()) << "the container may be gone";
}

TEST_F(NriEventsTest, AsksBeforeAContainerStartsByStateChangeAndByTheSpecificCall) {
  Attach();
  wire::ContainerEventRequest request;
  *request.mutable_pod() = NriPod("1");
  *request.mutable_container() = NriContainer("c");
  const auto start_twice = [&] {
    const Status by_call = runtime_->Call("StartContainer", request.SerializeAsString()).status();
    EXPECT_EQ(runtime_->StateChange(wire::START_CONTAINER, NriPod("1"), NriContainer("c")),
              by_call);
    return by_call;
  };
  EXPECT_EQ(start_twice(), OkStatus());
  events_.on_start = [](const RuntimeContainer&, const StartReply& reply) {
    reply(Errorf(StatusCode::kFailedPrecondition, "lane 3 is broken"));
  };
  EXPECT_EQ(MessageOf(start_twice()), "lane 3 is broken");
}

TEST_F(NriEventsTest, ReceivesSameEventsByStateChangeAndBySpecificCalls) {
  Attach();
  const std::vector<std::string> before = events_.log();
  const auto news = [&] {
    std::vector<std::string> log = events_.log();
    log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(before.size()));
    return log;
  };
  const std::vector<std::pair<std::string, wire::Event>> events = {
      {"RunPodSandbox", wire::RUN_POD_SANDBOX},
      {"PostStartContainer", wire::POST_START_CONTAINER},
      {"StopContainer", wire::STOP_CONTAINER},
      {"StopPodSandbox", wire::STOP_POD_SANDBOX},
      {"RemoveContainer", wire::REMOVE_CONTAINER},
      {"RemovePodSandbox", wire::REMOVE_POD_SANDBOX}};
  for (const auto& [method, event] : events) {
    ASSERT_TRUE(runtime_->StateChange(event, NriPod("1"), NriContainer("c")).ok());
    wire::ContainerEventRequest request;
    *request.mutable_pod() = NriPod("1");
    *request.mutable_container() = NriContainer("c");
    ASSERT_TRUE(runtime_->Call(method, request.SerializeAsString()).ok());
  }
  EXPECT_THAT(news(), ElementsAre("pod started 1", "pod started 1", "started c", "started c",
                                  "stopped c", "stopped c", "pod stopped 1", "pod stopped 1",
                                  "removed c", "removed c", "pod removed 1", "pod removed 1"));
}

TEST_F(NriEventsTest, FailsNoPodWhateverItsEventSays) {
  Attach();
  for (const char* method : {"RunPodSandbox", "StateChange", "StopPodSandbox"}) {
    EXPECT_TRUE(runtime_->Call(method, "\xff\xff\xff").ok())
        << method << ": containerd would not start again with the sandbox that it then keeps";
  }
  EXPECT_TRUE(runtime_->StateChange(wire::RUN_POD_SANDBOX, wire::PodSandbox()).ok());
}

TEST_F(NriEventsTest, AnswersWhatItDoesNotKnow) {
  Attach();
  EXPECT_EQ(runtime_->Call("InventedLater", "").status().code(), StatusCode::kUnimplemented);
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): as a later runtime would.
  const auto unknown = static_cast<wire::Event>(77);
  EXPECT_TRUE(runtime_->StateChange(unknown, NriPod("1")).ok());
  EXPECT_EQ(runtime_->Call("CreateContainer", "\xff\xff\xff").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(plugin_->GetStatus().connected);
}

TEST_F(NriEventsTest, ServesOnlyThePluginsService) {
  Attach();
  ttrpc::Request request;
  request.set_service("nri.pkg.api.v1alpha1.HostFunctions");
  request.set_method("CreateContainer");
  EXPECT_EQ(runtime_->CallRaw(request).status().code(), StatusCode::kUnimplemented);
}

TEST_F(NriEventsTest, PassesRepeatedAndDisorderedEventsOn) {
  Attach();
  const auto tell = [&](wire::Event event) {
    EXPECT_TRUE(runtime_->StateChange(event, NriPod("1"), NriContainer("c")).ok());
  };
  const std::size_t before = events_.log().size();
  for (const wire::Event event :
       {wire::REMOVE_POD_SANDBOX, wire::STOP_CONTAINER, wire::STOP_CONTAINER,
        wire::POST_START_CONTAINER, wire::RUN_POD_SANDBOX}) {
    tell(event);
  }
  EXPECT_TRUE(Create().ok());
  EXPECT_TRUE(Create().ok());
  EXPECT_EQ(events_.log().size(), before + 7);
}

TEST_F(NriEventsTest, NamesContainerByLabelWhenTheRuntimeDoesNot) {
  Attach();
  wire::Container container = NriContainer("");
  (*container.mutable_labels())["io.kubernetes.container.name"] = "labelled";
  ASSERT_TRUE(runtime_->CreateContainer(NriPod("1"), container).ok());
  EXPECT_EQ(events_.log().back(), "create labelled");
}

TEST_F(NriEventsTest, KeepsTheLabelsOfThePod) {
  ScriptedRuntimeOptions script;
  wire::PodSandbox pod = NriPod("1");
  (*pod.mutable_labels())["app"] = "web";
  (*pod.mutable_labels())["io.cri-containerd.kind"] = "sandbox";
  (*pod.mutable_labels())["io.kubernetes.pod.uid"] = "1";
  (*pod.mutable_annotations())["kubernetes.io/config.source"] = "file";
  (*pod.mutable_annotations())["io.kubernetes.cri.sandbox-id"] = "x";
  script.pods.push_back(pod);
  Attach(script);
  EXPECT_EQ(events_.pods()[0].labels, (StringMap{{"app", "web"}}));
  EXPECT_EQ(events_.pods()[0].annotations, (StringMap{{"kubernetes.io/config.source", "file"}}));
}

}  // namespace
}  // namespace qrm::manager::nri_events_test
