#include "manager/pods/pod_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/await.h"

namespace qrm::manager::pod_events_test {
namespace {

using test::Container;
using test::Key;
using test::Pod;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

class PodEventsTest : public test::PodEventsFixture {};

TEST_F(PodEventsTest, AnswersACreationWithWhatThePluginsGave) {
  const auto adjustment = Create(Pod("web"), Container("web", "id1"));
  ASSERT_TRUE(adjustment.ok()) << adjustment.status();
  EXPECT_EQ(adjustment->resources.cpuset_cpus, "0-1");
  EXPECT_EQ(Live("web").id, "id1");
  EXPECT_FALSE(Live("web").started);
}

TEST_F(PodEventsTest, RejectsACreationWithThePluginsSentence) {
  Serve(false);
  const auto adjustment = Create(Pod("web"), Container("web", "id1"));
  EXPECT_EQ(adjustment.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(adjustment.status()), HasSubstr("the cpu plugin"));
  EXPECT_FALSE(live_.Find(Key("web")).has_value());
}

TEST_F(PodEventsTest, SucceedsWhenARejectedCreationIsTriedAgain) {
  Serve(false);
  EXPECT_FALSE(Create(Pod("web"), Container("web", "id1")).ok());
  Serve(true);
  EXPECT_TRUE(Create(Pod("web"), Container("web", "id2")).ok());
}

TEST_F(PodEventsTest, SkipsContainersOfNoPod) {
  RuntimePod pod = Pod("web");
  pod.uid = {};
  const auto adjustment = Create(pod, Container("web", "id1"));
  ASSERT_TRUE(adjustment.ok());
  EXPECT_EQ(*adjustment, ContainerAdjustment());
}

TEST_F(PodEventsTest, ReconcilesSoonWhenAContainerGotExclusiveCpus) {
  ASSERT_TRUE(Create(Pod("shared"), Container("shared", "id1")).ok());
  EXPECT_EQ(Reconciles(), 0U);
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id2")).ok());
  EXPECT_EQ(Reconciles(), 1U);
}

TEST_F(PodEventsTest, GivesARestartedContainerTheSameUnderItsNewId) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  plugins_.ForgetCalls();
  const auto again = Create(Pod("web"), Container("web", "id2"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->resources.cpuset_cpus, "0-1");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  events_.OnContainerRemoved(Pod("web"), Container("web", "id1"));
  EXPECT_EQ(Live("web").id, "id2");
}

TEST_F(PodEventsTest, FreesAPodOnlyWithItsLastSandbox) {
  events_.OnPodStarted(Pod("web", "sandbox-old"));
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  events_.OnPodRemoved(Pod("web", "sandbox-old"));
  test::Settle(state_);
  EXPECT_TRUE(Known("web"));
  events_.OnPodRemoved(Pod("web"));
  test::Settle(state_);
  EXPECT_FALSE(Known("web"));
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
}

TEST_F(PodEventsTest, RemovesPodsThatTheRuntimeNoLongerHas) {
  ASSERT_TRUE(Create(Pod("gone"), Container("gone", "id1")).ok());
  ASSERT_TRUE(Create(Pod("stays"), Container("stays", "id2")).ok());
  Synchronize({Pod("stays")}, {Container("stays", "id2")});
  EXPECT_FALSE(Known("gone"));
  EXPECT_TRUE(Known("stays"));
}

TEST_F(PodEventsTest, KeepsPodsYoungerThanTheSynchronization) {
  test::RunOn(state_, [this] {  // the pod starts before the state loop comes to the synchronization
    events_.OnSynchronize({}, {}, [](const auto&) {});
    events_.OnCreateContainer(Pod("young"), Container("young", "id1"), [](const auto&) {});
  });
  test::Settle(state_);
  EXPECT_TRUE(Known("young"));
}

TEST_F(PodEventsTest, AdmitsContainersThatStartedWithoutUsAndHasThemPinned) {
  Synchronize({Pod("web")}, {Container("web", "id1")});
  ASSERT_TRUE(Known("web"));
  EXPECT_THAT(state_.Load()->Find(Key("web"))->applied, IsEmpty());
  EXPECT_TRUE(Live("web").started);
  EXPECT_GE(Reconciles(), 1U);
}

TEST_F(PodEventsTest, IgnoresContainersThatHaveEnded) {
  Synchronize({Pod("web")}, {Container("web", "id1", RuntimeContainerState::kStopped)});
  EXPECT_FALSE(Known("web"));
}

TEST_F(PodEventsTest, TriesUnpinnedContainersAgainWhenAPluginIsBack) {
  Serve(false);
  Synchronize({Pod("web")}, {Container("web", "id1")});
  EXPECT_FALSE(Known("web"));
  Serve(true);
  placer_.RetryUnplaced();
  test::Settle(state_);
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodEventsTest, PlacesContainersThatNoPluginServedWhenOneIsNew) {
  plugins_.Drop("cpu");
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  EXPECT_FALSE(Known("web"));
  test::PluginScript memory;
  memory.gives = AllocationByResource{{"memory", test::NodeMemory({{0, 1 << 20}})}};
  plugins_.Set("memory", memory);
  placer_.RetryUnplaced();
  test::Settle(state_);
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodEventsTest, DistrustsValuesThatTheRuntimeDoesNotShow) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  RuntimeContainer unpinned = Container("web", "id1");
  Synchronize({Pod("web")}, {unpinned});
  EXPECT_THAT(state_.Load()->Find(Key("web"))->applied, IsEmpty());
}

TEST_F(PodEventsTest, WritesNothingWhenTheRuntimeShowsOurValues) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  const std::size_t before = journal_.commits();
  RuntimeContainer pinned = Container("web", "id1");
  pinned.resources.cpuset_cpus = "0-1";
  Synchronize({Pod("web")}, {pinned});
  EXPECT_EQ(journal_.commits(), before);
}

TEST_F(PodEventsTest, KeepsOurCpusWhenAnotherProcessUpdates) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  for (const char* theirs : {"", "0-7"}) {
    LinuxResources requested{.cpu_shares = 512, .cpuset_cpus = theirs};
    const auto updates = Update(Pod("web"), Container("web", "id1"), requested);
    ASSERT_EQ(updates.size(), 1u);
    EXPECT_EQ(updates[0], (ContainerUpdate{"id1", {.cpuset_cpus = "0-1"}}));
  }
}

// Its record can be back on the CPUs that the runtime last took before these are sent.
TEST_F(PodEventsTest, RemembersThatTheRuntimeWasAnsweredCpusThatItHasNotBeenSent) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  const auto use_cpus = [this](const std::string& cpus) {
    test::RunOn(state_, [this, &cpus] {
      checkpoint::ContainerRecord record = *state_.Load()->Find(Key("web"));
      record.allocations.at("cpu").Edit().value = cpus;
      checkpoint::Change change;
      change.put_containers.push_back({test::SamplePod("web"), "main", record});
      ASSERT_TRUE(state_.Commit(change).ok());
    });
  };
  Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-7"});
  EXPECT_FALSE(live_.FindDeferred(Key("web"), "id1").has_value());
  use_cpus("0-3");
  Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-7"});
  use_cpus("0-1");
  EXPECT_THAT(live_.FindDeferred(Key("web"), "id1"),
              Optional(Field(&DeferredCpus::runtime_differs, true)));
}

TEST_F(PodEventsTest, LetsTheEchoOfOurUpdatePass) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  EXPECT_THAT(Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-1"}), IsEmpty());
  EXPECT_THAT(Update(Pod("x"), Container("x", "id9"), {.cpuset_cpus = "0-1"}), IsEmpty());
}

// Its record is on other CPUs by then, and no other event shows that the runtime will write.
TEST_F(PodEventsTest, AnOwnerOfCpusThatAPendingUpdateTakesGetsThemExclusively) {
  RuntimeContainer shared = Container("web", "id1");
  shared.cgroups_path = "web";
  ASSERT_TRUE(Create(Pod("web"), shared).ok());
  Update(Pod("web"), shared, {.cpuset_cpus = "0-1"});
  cgroups_.Make("web", "0-1");  // the runtime has just written it
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record = *state_.Load()->Find(Key("web"));
    record.allocations.at("cpu") = test::SharedCpus("4-5", 2);
    record.applied = StringMap{{std::string(kCpusetCpus), "4-5"}};
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  Serve(true, /*exclusive=*/true);
  ASSERT_TRUE(Create(Pod("owner"), Container("owner", "id2")).ok());
  EXPECT_EQ(cgroups_.CpusOf("web"), "2-7");
}

TEST_F(PodEventsTest, ReconcilesAContainerWhoseValuesChangedBeforeItStarted) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  events_.OnContainerStarted(Pod("web"), Container("web", "id1"));
  EXPECT_EQ(Reconciles(), 0U);
  EXPECT_TRUE(Live("web").started);
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record = *state_.Load()->Find(Key("web"));
    record.allocations.at("cpu").Edit().value = "2-3";
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  events_.OnContainerStarted(Pod("web"), Container("web", "id1"));
  EXPECT_EQ(Reconciles(), 1U);
}

TEST_F(PodEventsTest, KnowsAContainerFromItsStartOn) {
  events_.OnContainerStarted(Pod("web"), Container("web", "id1"));
  EXPECT_TRUE(Live("web").started);
}

TEST_F(PodEventsTest, ForgetsTheIdsOfContainersThatEnded) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  events_.OnContainerStopped(Pod("web"), Container("web", "id1"));
  EXPECT_FALSE(live_.Find(Key("web")).has_value());
  EXPECT_TRUE(Known("web")) << "it may be started again";
}

TEST_F(PodEventsTest, AsksAgainForWhatAResizeInPlaceLetGrow) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
  plugins_.ForgetCalls();
  Update(Pod("web"), Container("web", "id1"), {.cpuset_cpus = "0-1"});
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), IsEmpty()) << "our own update came back";
  Update(Pod("web"), Container("web", "id1"), {.cpu_shares = 4096});
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), Contains("allocate cpu"));
  EXPECT_EQ(plugins_.allocated("cpu").quantity(), 4);
  EXPECT_THAT(state_.Load()->Find(Key("web"))->applied, IsEmpty()) << "to be applied";
  EXPECT_GE(Reconciles(), 1U);
}

TEST_F(PodEventsTest, TriesAnUnpinnedContainerAgainWithWhatAResizeInPlaceLeft) {
  test::PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no room");
  plugins_.Set("cpu", full);
  Synchronize({Pod("web")}, {Container("web", "id1")});
  ASSERT_FALSE(Known("web"));
  Serve(true);
  Update(Pod("web"), Container("web", "id1"), {.cpu_shares = 4096});
  EXPECT_TRUE(test::Await([this] {
    test::Settle(state_);
    return Known("web");
  }));
  EXPECT_EQ(plugins_.allocated("cpu").quantity(), 4);
}

TEST_F(PodEventsTest, AuditsWhatASynchronizationMayHaveLeftOut) {
  runtime_.SetContainers({Pod("late")}, {Container("late", "id1")});
  Synchronize({}, {});
  RunTimers();
  EXPECT_EQ(audited_.left_out, 1);
}

TEST_F(PodEventsTest, FreesAPodAWhileAfterItsSandboxStopped) {
  ASSERT_TRUE(Create(Pod("job"), Container("job", "id1")).ok());
  events_.OnContainerStopped(Pod("job"), Container("job", "id1"));
  events_.OnPodStopped(Pod("job"));
  RunTimers();
  EXPECT_FALSE(Known("job"));
}

}  // namespace
}  // namespace qrm::manager::pod_events_test
