// The observer against a CRI runtime that sends events correctly, badly, or not at all.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/pods/observer.h"
#include "test/support/await.h"
#include "test/support/fake_snapshots.h"
#include "test/support/loop_thread.h"
#include "test/support/sample_node.h"
#include "test/support/scripted_cri.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::observer_cri_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using test::Await;
using testing::ElementsAre;
using testing::IsEmpty;

namespace cri = ::runtime::v1;

cri::PodSandbox Pod(const std::string& name) {
  cri::PodSandbox pod;
  pod.set_id("sandbox-" + name);
  pod.mutable_metadata()->set_uid("uid-" + name);
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_("default");
  return pod;
}

cri::Container Container(const std::string& pod, const std::string& id,
                         cri::ContainerState state = cri::CONTAINER_RUNNING) {
  cri::Container container;
  container.set_id(id);
  container.set_pod_sandbox_id("sandbox-" + pod);
  container.set_state(state);
  container.mutable_metadata()->set_name("main");
  return container;
}

class ObserverCriTest : public testing::Test, public ObservationListener {
 protected:
  void TearDown() override {
    loop_.Run([this] {
      observer_.reset();
      client_.reset();
    });
  }

  // Without `period`, it looks only after events.
  void Begin(milliseconds period = hours(1)) {
    loop_.Run([&] {
      client_ = std::make_unique<CriClient>(loop_.io(), CriOptions{.socket = socket_});
      observer_ = std::make_unique<Observer>(Observer::Parts{.io = loop_.io(),
                                                             .runtime = *client_,
                                                             .state = state_,
                                                             .live = live_,
                                                             .read_cpuset = {},
                                                             .listener = *this},
                                             ObserverOptions{.period = period,
                                                             .grace = milliseconds(0),
                                                             .min_gap = milliseconds(1),
                                                             .watch_retry = milliseconds(5)});
      observer_->OnNriAway();
    });
  }
  // Keeps the containers of an observation, as Inventory does.
  void OnObserved(Observation seen) override {
    std::map<SharedText, std::set<SharedText>> pods;
    std::map<ContainerKey, LiveContainer> containers;
    for (const RuntimePod& pod : seen.pods) {
      pods[pod.uid].insert(pod.id);
    }
    for (const RuntimeContainer& container : seen.containers) {
      containers[{"uid-" + container.pod_id->substr(8), container.name}] = {
          container.id, container.pod_id, true, container.cgroups_path};
    }
    live_.Reset(pods, std::move(containers), seen.doubtful);
    const MutexLock lock(mutex_);
    ++looks_;
    latest_ = std::move(seen);
  }
  int looks() const {
    const MutexLock lock(mutex_);
    return looks_;
  }
  std::vector<std::string> Ids() const {
    const MutexLock lock(mutex_);
    std::vector<std::string> ids;
    ids.reserve(latest_.containers.size());
    for (const RuntimeContainer& container : latest_.containers) {
      ids.push_back(container.id);
    }
    return ids;
  }
  Observation latest() const {
    const MutexLock lock(mutex_);
    return latest_;
  }

  test::TempDir dir_;
  const std::string socket_ = dir_ / "cri.sock";
  std::unique_ptr<test::ScriptedCri> runtime_ = std::make_unique<test::ScriptedCri>(socket_);
  test::FakeSnapshots state_;
  LiveContainers live_;
  mutable Mutex mutex_;
  int looks_ QRM_GUARDED_BY(mutex_) = 0;
  Observation latest_ QRM_GUARDED_BY(mutex_);
  test::LoopThread loop_;
  std::unique_ptr<CriClient> client_;
  std::unique_ptr<Observer> observer_;
};

TEST_F(ObserverCriTest, EventMakesItLookAtOnce) {
  Begin();
  ASSERT_TRUE(Await([&] { return looks() == 1 && runtime_->event_streams() == 1; }));
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id", cri::CONTAINER_CREATED));
  runtime_->SetInfo("id", R"({"pid":42,"runtimeSpec":{"process":{"oomScoreAdj":-997},
      "linux":{"cgroupsPath":"/kubepods/poduid/id"}}})");
  cri::LinuxContainerResources values;
  values.set_cpu_shares(2048);
  runtime_->SetResources("id", values);
  ASSERT_TRUE(runtime_->SendEvent(cri::CONTAINER_CREATED_EVENT, "id"));
  ASSERT_TRUE(Await([&] { return looks() == 2; }));
  const Observation seen = latest();
  ASSERT_THAT(Ids(), ElementsAre("id"));
  EXPECT_EQ(seen.containers[0].resources.cpu_shares, 2048u);
  EXPECT_EQ(seen.containers[0].oom_score_adj, -997);
  EXPECT_EQ(seen.containers[0].cgroups_path, "/kubepods/poduid/id");
  EXPECT_EQ(seen.containers[0].pid, 42u);
  EXPECT_TRUE(observer_->GetStatus().has_events);
}

TEST_F(ObserverCriTest, RepeatedAndReorderedEventsShowWhatIsThere) {
  Begin();
  ASSERT_TRUE(Await([&] { return looks() == 1 && runtime_->event_streams() == 1; }));
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  // The container was started; the events say the opposite, many times.
  for (int times = 0; times < 50; ++times) {
    runtime_->SendEvent(cri::CONTAINER_DELETED_EVENT, "id");
    runtime_->SendEvent(cri::CONTAINER_STOPPED_EVENT, "id");
    runtime_->SendEvent(cri::CONTAINER_CREATED_EVENT, "never-there");
  }
  ASSERT_TRUE(Await([&] { return Ids() == std::vector<std::string>{"id"}; }));
  const int before = looks();
  EXPECT_LT(before, 150) << "events that come together are one reason to look";
  runtime_->RemoveContainer("id");
  runtime_->SendEvent(cri::CONTAINER_STARTED_EVENT, "id");
  EXPECT_TRUE(Await([&] { return Ids().empty() && looks() > before; }));
}

TEST_F(ObserverCriTest, EventsAndStatesThatItDoesNotKnowAreHarmless) {
  Begin();
  ASSERT_TRUE(Await([&] { return looks() == 1 && runtime_->event_streams() == 1; }));
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  // NOLINTBEGIN(clang-analyzer-optin.core.EnumCastOutOfRange): as a later runtime would.
  runtime_->PutContainer(Container("web", "odd", static_cast<cri::ContainerState>(77)));
  runtime_->SendEvent(static_cast<cri::ContainerEventType>(77), "id");
  // NOLINTEND(clang-analyzer-optin.core.EnumCastOutOfRange)
  EXPECT_TRUE(Await([&] { return Ids() == std::vector<std::string>{"id"}; }));
}

TEST_F(ObserverCriTest, RuntimeWithoutEventsIsAskedEveryPeriod) {
  runtime_->WithoutEvents();
  Begin(milliseconds(5));
  ASSERT_TRUE(Await([&] { return looks() >= 1; }));
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  EXPECT_TRUE(Await([&] { return Ids() == std::vector<std::string>{"id"}; }));
  EXPECT_FALSE(observer_->GetStatus().has_events);
}

TEST_F(ObserverCriTest, StreamThatBreaksIsFollowedByALookAndAnother) {
  Begin();
  ASSERT_TRUE(Await([&] { return looks() == 1 && runtime_->event_streams() == 1; }));
  runtime_->SendEvent(cri::CONTAINER_CREATED_EVENT, "x");
  ASSERT_TRUE(Await([&] { return looks() == 2; }));
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  runtime_->BreakEvents();  // the event of this container is lost
  EXPECT_TRUE(Await([&] { return Ids() == std::vector<std::string>{"id"}; }));
  ASSERT_TRUE(Await([&] { return runtime_->event_streams() >= 2; }));
  runtime_->RemoveContainer("id");
  EXPECT_TRUE(Await([&] {
    runtime_->SendEvent(cri::CONTAINER_DELETED_EVENT, "id");
    return Ids().empty();
  }));
}

TEST_F(ObserverCriTest, ErrorChangesNothingAndIsReported) {
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  Begin(milliseconds(5));
  ASSERT_TRUE(Await([&] { return looks() >= 1; }));
  runtime_->FailLists(Errorf(StatusCode::kUnavailable, "server is not initialized yet"));
  ASSERT_TRUE(Await([&] { return !observer_->GetStatus().working; }));
  EXPECT_THAT(observer_->GetStatus().problem, testing::HasSubstr("not initialized"));
  EXPECT_TRUE(live_.Find({"uid-web", "main"}).has_value());
  runtime_->FailLists(OkStatus());
  EXPECT_TRUE(Await([&] { return observer_->GetStatus().working; }));
}

TEST_F(ObserverCriTest, EmptyAnswerOfARestartedRuntimeRemovesNoPod) {
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  state_.Apply(test::Admit(test::SamplePod("web"), "main", {}));
  Begin(milliseconds(5));
  ASSERT_TRUE(Await([&] { return looks() >= 1; }));
  runtime_.reset();
  runtime_ = std::make_unique<test::ScriptedCri>(socket_);
  const int before = looks();
  ASSERT_TRUE(Await([&] { return looks() >= before + 2; }));
  EXPECT_THAT(Ids(), IsEmpty());
  EXPECT_THAT(latest().doubtful, ElementsAre("uid-web"));
  EXPECT_TRUE(live_.HasPod("uid-web"));
}

TEST_F(ObserverCriTest, ContainerThatEndsMeanwhileIsLeftOut) {
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "stays"));
  cri::Container other = Container("web", "orphan");
  other.set_pod_sandbox_id("sandbox-unknown");
  runtime_->PutContainer(other);
  Begin();
  ASSERT_TRUE(Await([&] { return looks() == 1; }));
  EXPECT_THAT(Ids(), ElementsAre("stays")) << "the pod of the other is not listed yet";
}

TEST_F(ObserverCriTest, TextThatIsNotAStatusAddsNothing) {
  runtime_->PutPod(Pod("web"));
  runtime_->PutContainer(Container("web", "id"));
  runtime_->SetInfo("id", R"({"pid":4.5,"runtimeSpec":[1,{"linux":3}]})");
  Begin();
  ASSERT_TRUE(Await([&] { return looks() == 1; }));
  EXPECT_EQ(latest().containers[0].cgroups_path, "");
  EXPECT_EQ(latest().containers[0].pid, 0u);
}

}  // namespace
}  // namespace qrm::manager::observer_cri_test
