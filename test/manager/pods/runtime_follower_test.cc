// manager/pods as the daemon uses it, with a runtime on a real NRI socket.
#include "manager/pods/runtime_follower.h"

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/pods/pod_placer.h"
#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/await.h"
#include "test/support/loop_thread.h"
#include "test/support/scripted_runtime.h"
#include "test/support/temp_dir.h"

namespace qrm::test::runtime_follower_test {
namespace {

using manager::FollowerOptions;
using manager::NodeParts;
using manager::NriOptions;
using manager::RuntimeFollower;
using manager::RuntimeMode;
using manager::RuntimeStatus;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RuntimeFollowerTest : public PodEventsFixture {
 protected:
  void TearDown() override {
    PodEventsFixture::TearDown();
    loop_.Run([this] { follower_->Stop(); });
    state_.Stop();  // posted work uses the follower
    loop_.Stop();
    follower_.reset();
  }

  void Start() {
    const NodeParts parts{.io = loop_.io(),
                          .state = state_,
                          .plugins = plugins_,
                          .source = source_,
                          .admitter = admitter_,
                          .releaser = releaser_,
                          .reconciler = reconciler_,
                          .runtime = runtime_,
                          .live = live_,
                          .writes = writes_,
                          .machine = machine_,
                          .read_cpuset = {}};
    loop_.Run([&] {
      follower_ = std::make_unique<RuntimeFollower>(
          parts, NriOptions{.socket = socket_, .backoff_last = milliseconds(20)},
          FollowerOptions{.pods = {.observer = {.grace = milliseconds(0)}},
                          .period = milliseconds(5),
                          .audits = {.delays = {milliseconds(1)}, .soon = milliseconds(1)},
                          .version_period = milliseconds(5)});
      ASSERT_EQ(follower_->Start(), OkStatus());
    });
  }
  bool AwaitMode(RuntimeMode mode) {
    return Await([&] { return follower_->GetStatus().mode == mode; });
  }

  const TempDir dir_;
  const std::string socket_ = dir_ / "nri.sock";
  LoopThread loop_;
  std::unique_ptr<RuntimeFollower> follower_;
};

TEST_F(RuntimeFollowerTest, AdmitsWhatTheRuntimeCreates) {
  ScriptedRuntime runtime(socket_);
  Start();
  ASSERT_TRUE(AwaitMode(RuntimeMode::kNri));
  nri::PodSandbox pod;
  pod.set_id("sandbox-web");
  pod.set_uid("uid-web");
  pod.set_name("web");
  nri::Container container;
  container.set_id("id1");
  container.set_pod_sandbox_id("sandbox-web");
  container.set_name("main");
  container.mutable_linux()->mutable_resources()->mutable_cpu()->mutable_shares()->set_value(2048);
  const auto created = runtime.CreateContainer(pod, container);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->adjust().linux().resources().cpu().cpus(), "0-1");
  EXPECT_TRUE(Known("web"));
}

TEST_F(RuntimeFollowerTest, FollowsOverCriUntilNriIsThereAndReportsWhichOfThemWorks) {
  runtime_.SetContainers({Pod("web")}, {Container("web", "id1")});
  Start();
  ASSERT_TRUE(AwaitMode(RuntimeMode::kObserver));
  EXPECT_TRUE(Await([this] { return Known("web"); }));
  RuntimeStatus status = follower_->GetStatus();
  EXPECT_TRUE(status.cri_reachable);
  EXPECT_EQ(status.runtime.name, "containerd");
  EXPECT_THAT(status.degraded_reasons, ElementsAre(HasSubstr("nri.sock")));
  EXPECT_THAT(status.not_ready_reasons, IsEmpty());

  ScriptedRuntime runtime(socket_);
  ASSERT_TRUE(AwaitMode(RuntimeMode::kNri));
  status = follower_->GetStatus();
  EXPECT_EQ(status.runtime.name, "containerd");
  EXPECT_EQ(status.nri_connects, 1U);
  EXPECT_THAT(status.degraded_reasons, IsEmpty());
}

TEST_F(RuntimeFollowerTest, AttachesAgainForAContainerThatASynchronizationLeftOut) {
  runtime_.SetContainers({Pod("late")}, {Container("late", "id1")});
  ScriptedRuntime runtime(socket_);
  Start();
  EXPECT_TRUE(runtime.WaitForSynchronizations(2));
  EXPECT_EQ(runtime.connections(), 2);
}

TEST_F(RuntimeFollowerTest, SaysSoWhenCriIsOfAnotherRuntimeThanNri) {
  ScriptedRuntimeOptions options;
  nri::PodSandbox& pod = options.pods.emplace_back();
  pod.set_id("sandbox-web");
  pod.set_uid("uid-web");
  pod.set_name("web");
  nri::Container& container = options.containers.emplace_back();
  container.set_id("id1");
  container.set_pod_sandbox_id("sandbox-web");
  container.set_name("main");
  container.set_state(nri::CONTAINER_RUNNING);
  runtime_.SetContainers({Pod("other")}, {Container("other", "id9")});
  ScriptedRuntime runtime(socket_, options);
  Start();
  const auto says_so = ElementsAre(HasSubstr("set cri-socket and nri-socket to sockets of one"));
  EXPECT_TRUE(Await([&] {  // CRI may not have answered yet
    const RuntimeStatus status = follower_->GetStatus();
    return status.mode == RuntimeMode::kNri && testing::Value(status.degraded_reasons, says_so);
  }));
  EXPECT_TRUE(Await([this] { return Known("web"); }));
}

TEST_F(RuntimeFollowerTest, FindsAnotherRuntimeAlsoByPodsThatCameByEvents) {
  runtime_.SetContainers({Pod("other")}, {Container("other", "id9")});
  ScriptedRuntime runtime(socket_);
  Start();
  ASSERT_TRUE(AwaitMode(RuntimeMode::kNri));
  Settle(state_);
  nri::PodSandbox pod;
  pod.set_id("sandbox-web");
  pod.set_uid("uid-web");
  pod.set_name("web");
  nri::Container container;
  container.set_id("id1");
  container.set_pod_sandbox_id("sandbox-web");
  container.set_name("main");
  ASSERT_TRUE(runtime.CreateContainer(pod, container).ok());
  EXPECT_TRUE(Await([this] { return !follower_->GetStatus().degraded_reasons.empty(); }));
  EXPECT_THAT(follower_->GetStatus().degraded_reasons,
              ElementsAre(HasSubstr("NRI and CRI contradict each other")));
}

TEST_F(RuntimeFollowerTest, IsDegradedWhileOnlyCriDoesNotAnswer) {
  runtime_.version = Errorf(StatusCode::kDeadlineExceeded, "no answer");
  ScriptedRuntime runtime(socket_);
  Start();
  ASSERT_TRUE(AwaitMode(RuntimeMode::kNri));
  EXPECT_FALSE(follower_->GetStatus().cri_reachable);
  EXPECT_THAT(follower_->GetStatus().degraded_reasons, ElementsAre(HasSubstr("no answer")));
}

TEST_F(RuntimeFollowerTest, PlacesContainersWithoutAPluginWhenAsked) {
  Serve(false);
  runtime_.SetContainers({Pod("web")}, {Container("web", "id1")});
  Start();
  ASSERT_TRUE(Await([this] { return live_.Find(Key("web")).has_value(); }));
  Settle(state_);
  EXPECT_FALSE(Known("web"));
  Serve(true);
  follower_->placer().RetryUnplaced();
  EXPECT_TRUE(Await([this] { return Known("web"); }));
}

}  // namespace
}  // namespace qrm::test::runtime_follower_test
