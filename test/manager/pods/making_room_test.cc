// Shared containers make room for owners of CPUs: the kernel at once, the runtime when it has time.
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"

namespace qrm::manager::making_room_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using test::Container;
using test::Key;
using test::Pod;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// Container main of pod web runs on the shared CPUs 0-3; the one of pod own gets 0-1 exclusively.
class MakingRoomTest : public test::PodEventsFixture {
 protected:
  explicit MakingRoomTest(const DeferralOptions& deferral) : PodEventsFixture(deferral) {}

  void SetUp() override {
    Synchronize({}, {});
    plugins_.Set("cpu", {.gives = AllocationByResource{{"cpu", test::SharedCpus("0-3", 2)}}});
    events_.OnPodStarted(Pod("web"));
    ASSERT_TRUE(Create(Pod("web"), Shared()).ok());
    cgroups_.Make("web", "0-3");
    events_.OnContainerStarted(Pod("web"), Shared());
    Reconcile();
    ASSERT_THAT(Told(), IsEmpty());
  }
  /// Deferred updates keep the reconciler's timers, whose loop goes first.
  void TearDown() override {
    while (runtime_.waiting() > 0) {
      runtime_.Answer();
      Reconcile();
    }
    PodEventsFixture::TearDown();
  }
  static RuntimeContainer Shared() {
    RuntimeContainer container = Container("web", "id2");
    container.cgroups_path = "web";
    return container;
  }
  static RuntimeContainer Owner() { return Container("own", "id3"); }
  /// The plugin gives `web` its shared CPUs, and the next container gets `own` exclusively.
  void Give(const std::string& web, const std::string& own = "0-1") {
    test::PluginScript script;
    script.gives = AllocationByResource{{"cpu", test::OwnCpus(own)}};
    script.changes = sdk::ChangedAllocations{
        .now = web, .changed = {{Key("web"), {{"cpu", test::SharedCpus(web, 2)}}}}};
    plugins_.Set("cpu", std::move(script));
  }
  void MakeOwner() {
    Give("2-3");
    events_.OnPodStarted(Pod("own"));
    ASSERT_TRUE(Create(Pod("own"), Owner()).ok());
    Reconcile();
  }
  void StartOwner() {
    Status started = Errorf(StatusCode::kInternal, "no reply");
    events_.OnStartContainer(Pod("own"), Owner(), [&](const Status& status) { started = status; });
    test::Settle(state_);
    ASSERT_TRUE(test::IsOk(started));
    Reconcile();
  }
  void RemoveOwner() {
    events_.OnContainerStopped(Pod("own"), Owner());
    events_.OnContainerRemoved(Pod("own"), Owner());
    events_.OnPodRemoved(Pod("own"));
    test::Settle(state_);
    Give("0-3");
    reconciler_.TriggerChanges();
    Reconcile();
  }
  /// Lets the reconciler do all its pending work.
  void Reconcile() {
    constexpr int kHandOvers = 40;  // between its two loops
    for (int i = 0; i < kHandOvers; ++i) {
      reconcile_io_.restart();
      reconcile_io_.poll();
      test::Settle(state_);
    }
  }
  std::string Kernel() const { return cgroups_.CpusOf("web"); }
  std::string Recorded() { return state_.Load()->Find(Key("web"))->allocations.at("cpu")->value; }
  /// The updates that the runtime got so far.
  std::vector<std::string> Told() const {
    std::vector<std::string> told;
    for (const ContainerUpdate& update : runtime_.updates()) {
      told.push_back(update.container_id + " " + update.resources.cpuset_cpus);
    }
    return told;
  }
};

class MakingRoomAtOnceTest : public MakingRoomTest {
 protected:
  MakingRoomAtOnceTest()
      : MakingRoomTest({.quiet_for_growth = milliseconds(0),
                        .growth_at_latest = hours(1),
                        .quiet = milliseconds(0),
                        .at_latest = hours(1),
                        .gap = milliseconds(0),
                        .look = milliseconds(0)}) {}
};

TEST_F(MakingRoomAtOnceTest, TheRuntimeIsSentNothingWhileItCreatesStartsOrRemoves) {
  MakeOwner();
  EXPECT_EQ(Recorded(), "2-3");
  EXPECT_EQ(Kernel(), "2-3");
  EXPECT_THAT(Told(), IsEmpty()) << "it creates the owner";
  StartOwner();
  EXPECT_THAT(Told(), IsEmpty()) << "it starts the owner";
  events_.OnContainerStarted(Pod("own"), Owner());
  Reconcile();
  EXPECT_THAT(Told(), ElementsAre("id2 2-3"));

  events_.OnContainerStopped(Pod("own"), Owner());
  Give("2-4");
  reconciler_.TriggerChanges();
  Reconcile();
  EXPECT_EQ(Kernel(), "2-3") << "it removes the owner";
  EXPECT_THAT(Told(), ElementsAre("id2 2-3"));
  events_.OnPodStopped(Pod("own"));
  Reconcile();
  EXPECT_THAT(Told(), ElementsAre("id2 2-3", "id2 2-4"));
  EXPECT_EQ(reconciler_.GetStatus().deferred, 0u);
}

TEST_F(MakingRoomAtOnceTest, CpusThatTheNextOwnerGetsAreNotGivenToOthersInBetween) {
  MakeOwner();
  StartOwner();
  events_.OnContainerStarted(Pod("own"), Owner());
  events_.OnPodStarted(Pod("next"));
  RemoveOwner();
  EXPECT_EQ(Recorded(), "0-3");
  EXPECT_EQ(Kernel(), "2-3") << "the runtime makes the next pod's sandbox";
  Give("2-3");
  ASSERT_TRUE(Create(Pod("next"), Container("next", "id4")).ok());
  events_.OnContainerStarted(Pod("next"), Container("next", "id4"));
  Reconcile();
  EXPECT_EQ(Kernel(), "2-3");
  EXPECT_THAT(live_.DeferredKeys(), IsEmpty());
}

TEST_F(MakingRoomAtOnceTest, OthersLeaveTheCpusThatAnOwnerGetsByGrowing) {
  MakeOwner();
  StartOwner();
  events_.OnContainerStarted(Pod("own"), Owner());
  ASSERT_EQ(Kernel(), "2-3");
  Give("3", "0-2");
  Update(Pod("own"), Owner(), {.cpu_shares = 3072, .cpu_period_us = 100000});
  test::Settle(state_);
  EXPECT_EQ(Kernel(), "3") << "before a reconcile gives the owner its CPUs";
}

TEST_F(MakingRoomAtOnceTest, ContainersAreUpdatedOneAfterTheOther) {
  for (const char* name : {"a", "b"}) {
    cgroups_.Make(name, "0-3");
    live_.Add(Key(name), {.id = name,
                          .pod_id = std::string("sandbox-") + name,
                          .started = true,
                          .cgroups_path = name});
    test::RunOn(state_, [&] {
      checkpoint::Change change;
      change.put_containers.push_back({test::SamplePod(name),
                                       "main",
                                       {.allocations = {{"cpu", test::SharedCpus("2-3", 1)}},
                                        .applied = {{std::string(kCpusetCpus), "0-3"}},
                                        .applied_to = name}});
      ASSERT_TRUE(state_.Commit(change).ok());
    });
  }
  runtime_.Hold();
  reconciler_.TriggerChanges(Key("a"));
  reconciler_.TriggerChanges(Key("b"));
  Reconcile();
  EXPECT_EQ(cgroups_.CpusOf("a") + " " + cgroups_.CpusOf("b"), "2-3 2-3");
  EXPECT_EQ(runtime_.waiting(), 1u);
  reconcile_io_.restart();
  runtime_.Answer();
  Reconcile();
  EXPECT_EQ(runtime_.waiting(), 1u);
  EXPECT_THAT(Told(), ElementsAre("a 2-3", "b 2-3"));
}

// The runtime writes it while the state loop waits: no other event shows that it has.
TEST_F(MakingRoomAtOnceTest, AnOwnerIsCreatedAfterTheRuntimesPendingWrite) {
  MakeOwner();
  StartOwner();
  runtime_.Hold();
  events_.OnContainerStarted(Pod("own"), Owner());
  Reconcile();
  ASSERT_THAT(Told(), ElementsAre("id2 2-3"));
  Update(Pod("web"), Shared(), {.cpuset_cpus = "2-3"});  // the runtime asks, and writes it later

  Give("3", "2");
  std::promise<std::string> then;
  events_.OnPodStarted(Pod("late"));
  events_.OnCreateContainer(Pod("late"), Container("late", "id4"),
                            [&](const StatusOr<ContainerAdjustment>& reply) {
                              then.set_value(reply.ok() ? Kernel() : MessageOf(reply.status()));
                            });
  EXPECT_TRUE(test::Await([&] { return Kernel() == "3"; }));
  cgroups_.Make("web", "2-3");
  EXPECT_EQ(then.get_future().get(), "3");
}

class MakingRoomLaterTest : public MakingRoomTest {
 protected:
  MakingRoomLaterTest()
      : MakingRoomTest({.quiet_for_growth = milliseconds(0),
                        .growth_at_latest = hours(1),
                        .quiet = hours(1),
                        .at_latest = hours(1),
                        .gap = milliseconds(0),
                        .look = milliseconds(0)}) {}
};

TEST_F(MakingRoomLaterTest, TheRuntimeIsSentNothingOfAContainerThatHasItsFormerCpusAgain) {
  MakeOwner();
  StartOwner();
  events_.OnContainerStarted(Pod("own"), Owner());
  Reconcile();
  EXPECT_EQ(Kernel(), "2-3");
  EXPECT_EQ(reconciler_.GetStatus().deferred, 1u);
  RemoveOwner();
  EXPECT_EQ(Kernel(), "0-3");
  EXPECT_THAT(live_.DeferredKeys(), IsEmpty());
  EXPECT_EQ(reconciler_.GetStatus().deferred, 0u);
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(MakingRoomLaterTest, WhatTheRuntimeWritesMeanwhileIsCorrected) {
  MakeOwner();
  cgroups_.Make("web", "0-3");
  StartOwner();
  EXPECT_EQ(Kernel(), "2-3") << "before the owner's first instruction";
  cgroups_.Make("web", "0-3");
  Reconcile();
  EXPECT_EQ(Kernel(), "2-3") << "and while it runs";
  EXPECT_GE(writes_.repairs(), 1u);
}

// As after a kill between both writes.
TEST_F(MakingRoomLaterTest, ARestartedManagerKnowsItsPendingUpdates) {
  MakeOwner();
  events_.OnContainerStarted(Pod("own"), Owner());
  live_.ClearDeferred(Key("web"), "id2");
  reconciler_.Trigger();
  Reconcile();
  EXPECT_THAT(live_.DeferredKeys(), Contains(Key("web")));
  EXPECT_EQ(Kernel(), "2-3");
  EXPECT_EQ(writes_.repairs(), 0u) << "no other process has written it";
}

class MakingRoomAtLatestTest : public MakingRoomTest {
 protected:
  MakingRoomAtLatestTest()
      : MakingRoomTest({.quiet_for_growth = hours(1),
                        .growth_at_latest = milliseconds(0),
                        .quiet = hours(1),
                        .at_latest = milliseconds(0),
                        .gap = milliseconds(0),
                        .look = milliseconds(0)}) {}
};

TEST_F(MakingRoomAtLatestTest, OthersGainCpusAllTheSameBesideARuntimeThatIsBusyForTooLong) {
  MakeOwner();
  StartOwner();
  events_.OnContainerStarted(Pod("own"), Owner());
  events_.OnPodStarted(Pod("next"));
  RemoveOwner();
  EXPECT_EQ(Kernel(), "0-3");
}

TEST_F(MakingRoomAtLatestTest, ARuntimeThatIsBusyForTooLongGetsTheUpdateAllTheSame) {
  MakeOwner();
  Reconcile();
  EXPECT_THAT(Told(), ElementsAre("id2 2-3"));
}

}  // namespace
}  // namespace qrm::manager::making_room_test
