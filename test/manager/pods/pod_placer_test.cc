#include "manager/pods/pod_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/pods/pod_events_fixture.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"

namespace qrm::manager::pod_placer_test {
namespace {

using test::Container;
using test::Key;
using test::Pod;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A node with a finished job, whose allocations are kept; the cpu plugin has room only when they
// are released.
class PodPlacerTest : public test::PodEventsFixture {
 protected:
  void SetUp() override {
    events_.OnPodStarted(Pod("job"));
    ASSERT_TRUE(Create(Pod("job"), Container("job", "id1")).ok());
    events_.OnContainerStarted(Pod("job"), Container("job", "id1"));
    events_.OnContainerStopped(Pod("job"), Container("job", "id1"));
    plugins_.on_call = [this](const std::string& call) {
      if (call == "remove cpu uid-job") {
        Serve(true);
      }
    };
  }
  void Refuse(StatusCode code) {
    test::PluginScript full;
    full.gives = Errorf(code, "no");
    plugins_.Set("cpu", full);
  }
  static RuntimeContainer Named(const std::string& name, const std::string& id) {
    RuntimeContainer container = Container("job", id);
    container.name = name;
    return container;
  }
};

TEST_F(PodPlacerTest, AdmissionWithoutRoomGetsTheAllocationsOfEndedPods) {
  events_.OnPodStopped(Pod("job"));
  Refuse(StatusCode::kResourceExhausted);
  EXPECT_TRUE(Create(Pod("next"), Container("next", "id2")).ok());
  EXPECT_FALSE(Known("job"));
}

TEST_F(PodPlacerTest, AdmissionWithoutRoomReleasesNoPodThatMayContinue) {
  Refuse(StatusCode::kResourceExhausted);
  EXPECT_FALSE(Create(Pod("next"), Container("next", "id2")).ok());
  EXPECT_TRUE(Known("job")) << "its sandbox runs";
}

TEST_F(PodPlacerTest, AdmissionThatFailsForAnotherReasonKeepsAllocationsOfEndedPods) {
  events_.OnPodStopped(Pod("job"));
  Refuse(StatusCode::kInvalidArgument);
  EXPECT_FALSE(Create(Pod("next"), Container("next", "id2")).ok());
  EXPECT_TRUE(Known("job"));
}

TEST_F(PodPlacerTest, RunningContainerWithoutRoomGetsTheAllocationsOfEndedPods) {
  events_.OnPodStopped(Pod("job"));
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("next")}, {Container("next", "id2")});
  test::Settle(state_);
  EXPECT_TRUE(Known("next"));
  EXPECT_FALSE(Known("job"));
}

TEST_F(PodPlacerTest, ContainerThatEndedBeforeTheNextOfItsPodIsReleasedFirst) {
  plugins_.ForgetCalls();
  ASSERT_TRUE(Create(Pod("job"), Named("next", "id2")).ok());
  EXPECT_THAT(plugins_.calls(),
              ElementsAre("release cpu uid-job/main", "hints cpu", "allocate cpu"));
  EXPECT_FALSE(Known("job"));
}

TEST_F(PodPlacerTest, ContainerThatEndedBeforeTheNextOfItsPodIsReleasedWhenThatIsFound) {
  plugins_.ForgetCalls();
  Synchronize({Pod("job")},
              {Container("job", "id1", RuntimeContainerState::kStopped), Named("next", "id2")});
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(),
              ElementsAre("release cpu uid-job/main", "hints cpu", "allocate cpu"));
  EXPECT_FALSE(Known("job"));
}

TEST_F(PodPlacerTest, ContainerThatEndedUnnoticedIsReleasedWhenTheNextIsFound) {
  live_.Reset({}, {});
  Synchronize({Pod("job")}, {Named("next", "id2")});
  test::Settle(state_);
  EXPECT_FALSE(Known("job"));
  EXPECT_NE(state_.Load()->Find({"uid-job", "next"}), nullptr);
}

TEST_F(PodPlacerTest, ContainerThatIsMadeAgainReleasesNoOther) {
  ASSERT_TRUE(Create(Pod("job"), Named("next", "id2")).ok());
  events_.OnContainerStarted(Pod("job"), Named("next", "id2"));
  events_.OnContainerStopped(Pod("job"), Named("next", "id2"));
  plugins_.ForgetCalls();
  ASSERT_TRUE(Create(Pod("job"), Named("next", "id3")).ok());
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(PodPlacerTest, ContainerThatKubeletMadeBeforeIsNotReleased) {
  RuntimeContainer again = Container("job", "id2");
  again.attempt = 1;
  ASSERT_TRUE(Create(Pod("job"), again).ok());
  events_.OnContainerStarted(Pod("job"), again);
  events_.OnContainerStopped(Pod("job"), again);
  ASSERT_TRUE(Create(Pod("job"), Named("next", "id3")).ok());
  EXPECT_TRUE(Known("job"));
}

// As in a new sandbox: the init container runs again before the main one, which keeps its
// allocation.
TEST_F(PodPlacerTest, ContainerThatKubeletMakesAgainReleasesNoneThatCameAfterIt) {
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id2")).ok());
  events_.OnContainerStarted(Pod("web"), Container("web", "id2"));
  events_.OnContainerStopped(Pod("web"), Container("web", "id2"));
  RuntimeContainer again = Container("web", "id3");
  again.name = "setup";
  again.attempt = 1;
  ASSERT_TRUE(Create(Pod("web"), again).ok());
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodPlacerTest, ContainerOnRecordIsTriedWhenAPluginComesThatWasNotThere) {
  test::PluginScript memory;
  memory.gives = AllocationByResource{{"memory", test::NodeMemory({{0, 1 << 20}})}};
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id2")).ok());
  plugins_.Set("memory", memory);
  plugins_.ForgetCalls();
  placer_.OnPluginRegistered("cpu");
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), IsEmpty()) << "it has been asked";
  placer_.OnPluginRegistered("memory");
  test::Settle(state_);
  EXPECT_THAT(plugins_.calls(), Contains("allocate memory"));
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate cpu")));
  EXPECT_TRUE(state_.Load()->Find(Key("web"))->allocations.contains("memory"));
}

TEST_F(PodPlacerTest, UnpinnedContainersAreListedUntilTheyHaveAllocations) {
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("web"), Pod("etl")},
              {Container("web", "id2"), Container("etl", "id3")});
  std::vector<UnplacedContainer> unplaced;
  ASSERT_TRUE(test::Await([&] {
    test::Settle(state_);  // each try is a job that posts the next one
    unplaced = placer_.unplaced().List();
    return unplaced.size() == 2 && unplaced[0].state == UnplacedState::kRejected &&
           unplaced[1].state == UnplacedState::kRejected;
  }));
  EXPECT_EQ(unplaced[0].pod_name, "etl");
  EXPECT_EQ(unplaced[1].pod_name, "web");
  EXPECT_EQ(unplaced[1].runtime_id, "id2");
  EXPECT_THAT(unplaced[1].why, HasSubstr("cannot admit container main of pod default/web"));
  Serve(true);
  placer_.RetryUnplaced();
  EXPECT_TRUE(test::Await([&] {
    test::Settle(state_);
    return placer_.unplaced().List().empty();
  }));
}

TEST_F(PodPlacerTest, UnpinnedContainersAreTriedAgainWhenAnyChangeMayHaveMadeRoom) {
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("web")}, {Container("web", "id2")});
  const auto reconcile = [&] {
    test::RunOn(state_, [&] { placer_.CompareAllRequests(); });
    test::Settle(state_);
  };
  ASSERT_TRUE(test::Await([&] {
    reconcile();
    return placer_.unplaced().List().size() == 1 &&
           placer_.unplaced().List().front().state == UnplacedState::kRejected;
  }));
  Serve(true);
  reconcile();
  EXPECT_FALSE(Known("web")) << "nothing has changed";
  test::RunOn(state_, [&] {
    EXPECT_TRUE(state_.Commit(test::Admit(test::SamplePod("shrinks"), "main", {})).ok());
  });
  EXPECT_TRUE(test::Await([&] {
    reconcile();
    return Known("web");
  }));
}

TEST_F(PodPlacerTest, SkippedContainersAreListedWithTheReason) {
  plugins_.Drop("cpu");
  events_.OnPodStarted(Pod("web"));
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id2")).ok());
  const std::vector<UnplacedContainer> unplaced = placer_.unplaced().List();
  ASSERT_EQ(unplaced.size(), 1U);
  EXPECT_EQ(unplaced[0].state, UnplacedState::kSkipped);
  EXPECT_THAT(unplaced[0].why, HasSubstr("no running plugin serves"));
  events_.OnContainerStopped(Pod("web"), Container("web", "id2"));
  test::Settle(state_);
  EXPECT_THAT(placer_.unplaced().List(), IsEmpty());
}

TEST_F(PodPlacerTest, ContainersThatRunWaitForThePluginsOfBeforeTheStart) {
  test::PluginScript memory;
  memory.gives = AllocationByResource{{"memory", test::NodeMemory({{0, 1 << 20}})}};
  memory.registered_by = RegisteredBy::kCheckpoint;
  memory.live = false;
  plugins_.Set("memory", memory);
  live_.Add(Key("web"), {.id = "id2", .pod_id = "sandbox-web", .started = true});
  PodPlacer patient(parts_, std::chrono::seconds(10), std::chrono::hours(1));
  patient.Adopt({Pod("web")}, {Container("web", "id2")});
  test::Settle(state_);
  EXPECT_FALSE(Known("web")) << "cpu's answer now would bind memory to its nodes";

  memory.registered_by = RegisteredBy::kWatcher;
  memory.live = true;
  plugins_.Set("memory", memory);
  patient.OnPluginRegistered("memory");
  test::Settle(state_);
  ASSERT_TRUE(Known("web"));
  EXPECT_EQ(state_.Load()->Find(Key("web"))->allocations.size(), 2U);
}

TEST_F(PodPlacerTest, ContainersThatRunDoNotWaitForLongerThanTheGrace) {
  test::PluginScript gone{.registered_by = RegisteredBy::kCheckpoint, .live = false};
  plugins_.Set("memory", gone);
  live_.Add(Key("web"), {.id = "id2", .pod_id = "sandbox-web", .started = true});
  PodPlacer hasty(parts_, std::chrono::seconds(10), std::chrono::seconds(0));
  hasty.Adopt({Pod("web")}, {Container("web", "id2")});
  test::Settle(state_);
  EXPECT_TRUE(Known("web"));
}

TEST_F(PodPlacerTest, ContainerOnRecordIsTriedWhenTheRuntimeComesAfterAPluginThatWasNotThere) {
  test::PluginScript memory;
  memory.gives = AllocationByResource{{"memory", test::NodeMemory({{0, 1 << 20}})}};
  ASSERT_TRUE(Create(Pod("web"), Container("web", "id2")).ok());
  plugins_.Set("memory", memory);
  Synchronize({Pod("job"), Pod("web")}, {Container("web", "id2")});
  test::Settle(state_);
  EXPECT_TRUE(state_.Load()->Find(Key("web"))->allocations.contains("memory"));
}

TEST_F(PodPlacerTest, UnpinnedContainerLeavesExclusiveCpusOfOthers) {
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("web")}, {Container("web", "id2")});
  EXPECT_THAT(runtime_.updates(), IsEmpty()) << "no CPUs are exclusive";
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  ASSERT_EQ(runtime_.updates().size(), 1U);
  EXPECT_EQ(runtime_.updates()[0].container_id, "id2");
  const CpuSet moved = *CpuSet::Parse(runtime_.updates()[0].resources.cpuset_cpus);
  EXPECT_FALSE(moved.Intersects(CpuSet{0, 1}));
  EXPECT_TRUE(moved.IsSubsetOf(machine_.cpu_set()));
}

TEST_F(PodPlacerTest, UnpinnedContainerLeavesCpusThatAnotherGotByAReconcile) {
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("web")}, {Container("web", "id2")});
  checkpoint::Change change;
  change.put_containers.push_back({{.uid = "uid-job", .pod_namespace = "default", .name = "job"},
                                   "main",
                                   {.allocations = {{"cpu", test::OwnCpus("0-1")}}}});
  state_.Post([&] {
    EXPECT_EQ(state_.Remember(change), OkStatus());
    placer_.OnReconciled();
  });
  test::Settle(state_);
  ASSERT_EQ(runtime_.updates().size(), 1U);
  EXPECT_EQ(runtime_.updates()[0].container_id, "id2");
}

TEST_F(PodPlacerTest, UnpinnedContainerStaysOnCpusThatAreNotExclusive) {
  Refuse(StatusCode::kResourceExhausted);
  RuntimeContainer pinned = Container("web", "id2");
  pinned.resources.cpuset_cpus = "2-3";
  Synchronize({Pod("job"), Pod("web")}, {pinned});
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  EXPECT_THAT(runtime_.updates(), IsEmpty());
}

TEST_F(PodPlacerTest, ContainerWithoutAPluginLeavesExclusiveCpusOnRecord) {
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id2")).ok());
  plugins_.Set("cpu", {.registered_by = RegisteredBy::kCheckpoint, .live = false});
  Synchronize({Pod("job"), Pod("own"), Pod("web")},
              {Container("own", "id2"), Container("web", "id3")});
  test::Settle(state_);
  EXPECT_FALSE(Known("web"));
  ASSERT_EQ(runtime_.updates().size(), 1U);
  EXPECT_EQ(runtime_.updates()[0].container_id, "id3");
  EXPECT_FALSE(
      CpuSet::Parse(runtime_.updates()[0].resources.cpuset_cpus)->Intersects(CpuSet{0, 1}));
}

// A container runs on the shared CPUs 0-3; the next one has 0-1 exclusively.
class HandingOverTest : public PodPlacerTest {
 protected:
  void SetUp() override {
    PodPlacerTest::SetUp();
    ASSERT_TRUE(Create(Pod("web"), Shared()).ok());
    cgroups_.Make("web", "0-3");
    Serve(true, true);
  }
  static RuntimeContainer Shared() {
    RuntimeContainer container = Container("web", "id2");
    container.cgroups_path = "web";
    return container;
  }
  Status Start(const RuntimePod& pod, const RuntimeContainer& container) {
    Status started = Errorf(StatusCode::kInternal, "no reply");
    events_.OnStartContainer(pod, container, [&](const Status& status) { started = status; });
    test::Settle(state_);
    return started;
  }
};

TEST_F(HandingOverTest, OthersHaveLeftTheCpusOfAContainerWhenTheRuntimeMakesIt) {
  std::string then;
  events_.OnCreateContainer(Pod("own"), Container("own", "id3"),
                            [&](const StatusOr<ContainerAdjustment>& reply) {
                              EXPECT_TRUE(test::IsOk(reply.status()));
                              then = cgroups_.CpusOf("web");
                            });
  test::Settle(state_);
  EXPECT_EQ(then, "2-3");
}

TEST_F(HandingOverTest, UnpinnedContainersLeaveExclusiveCpusToo) {
  Refuse(StatusCode::kInvalidArgument);
  RuntimeContainer lost = Container("lost", "id4");
  lost.cgroups_path = "lost";
  cgroups_.Make("lost", "0-7");
  Synchronize({Pod("job"), Pod("web"), Pod("lost")}, {Shared(), lost});
  Serve(true, true);
  EXPECT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  EXPECT_EQ(cgroups_.CpusOf("lost"), "2-7");
}

TEST_F(HandingOverTest, ContainerIsRejectedWhileAnotherDoesNotLeaveItsCpus) {
  cgroups_.Break("web");
  EXPECT_THAT(MessageOf(Create(Pod("own"), Container("own", "id3")).status()),
              AllOf(HasSubstr("cannot create container main of pod default/own"),
                    HasSubstr("container main of pod uid-web does not leave CPUs")));
  cgroups_.Mend("web", "0-3");
  EXPECT_TRUE(Create(Pod("own"), Container("own", "id4")).ok());
  EXPECT_EQ(cgroups_.CpusOf("web"), "2-3");
}

TEST_F(HandingOverTest, WhereCgroupsMayNotBeWrittenAReconcileFollows) {
  cgroups_.MakeReadOnly("web");
  const std::size_t before = Reconciles();
  EXPECT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  EXPECT_GT(Reconciles(), before);
}

TEST_F(HandingOverTest, ContainerLeavesTheCpusThatAnotherGotAfterItWasMade) {
  cgroups_.Make("web", "4-7");  // as if it had not been made yet
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  cgroups_.Make("web", "0-3");
  EXPECT_TRUE(test::IsOk(Start(Pod("web"), Shared())));
  EXPECT_EQ(cgroups_.CpusOf("web"), "2-3");
}

TEST_F(HandingOverTest, ContainerBeginsOnlyWhenOthersHaveLeftItsCpus) {
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  cgroups_.Make("web", "0-3");  // an update that was under way arrived
  EXPECT_TRUE(test::IsOk(Start(Pod("own"), Container("own", "id3"))));
  EXPECT_EQ(cgroups_.CpusOf("web"), "2-3");
}

TEST_F(HandingOverTest, UpdateOfAContainerDoesNotBringItBackOntoCpusThatAnotherOwns) {
  Serve(true);
  plugins_.Set("cpu", {.gives = AllocationByResource{{"cpu", test::SharedCpus("0-3", 2)}}});
  ASSERT_TRUE(Create(Pod("wide"), Container("wide", "id5")).ok());
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  const auto updates =
      Update(Pod("wide"), Container("wide", "id5"), {.cpu_shares = 512, .cpuset_cpus = "0-3"});
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].resources.cpuset_cpus, "2-3");
  EXPECT_TRUE(live_.FindDeferred({"uid-wide", "main"}, "id5").has_value());
}

TEST_F(HandingOverTest, ContainerThatLeftCpusBeforeItsStartGetsItsPresentAllocation) {
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  ASSERT_TRUE(live_.FindDeferred({"uid-web", "main"}, "id2").has_value());
  const std::size_t before = Reconciles();
  events_.OnContainerStarted(Pod("web"), Shared());
  EXPECT_GT(Reconciles(), before);
}

}  // namespace
}  // namespace qrm::manager::pod_placer_test
