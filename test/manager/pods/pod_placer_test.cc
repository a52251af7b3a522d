#include "manager/pods/pod_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager {
namespace {

using test::Container;
using test::Key;
using test::Pod;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A node with a finished job, whose place is kept; the cpu plugin has room only when the job has
// left it.
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

TEST_F(PodPlacerTest, AdmissionThatLacksRoomGetsThatOfPodsThatHaveEnded) {
  events_.OnPodStopped(Pod("job"));
  Refuse(StatusCode::kResourceExhausted);
  EXPECT_TRUE(Create(Pod("next"), Container("next", "id2")).ok());
  EXPECT_FALSE(Known("job"));
}

TEST_F(PodPlacerTest, AdmissionThatLacksRoomLeavesPodsThatMayGoOnAlone) {
  Refuse(StatusCode::kResourceExhausted);
  EXPECT_FALSE(Create(Pod("next"), Container("next", "id2")).ok());
  EXPECT_TRUE(Known("job")) << "its sandbox runs";
}

TEST_F(PodPlacerTest, AdmissionThatFailsForAnotherReasonLeavesEndedPodsTheirPlace) {
  events_.OnPodStopped(Pod("job"));
  Refuse(StatusCode::kInvalidArgument);
  EXPECT_FALSE(Create(Pod("next"), Container("next", "id2")).ok());
  EXPECT_TRUE(Known("job"));
}

TEST_F(PodPlacerTest, RunningContainerThatLacksRoomGetsThatOfPodsThatHaveEnded) {
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

TEST_F(PodPlacerTest, ContainersThatRunWithoutAPlaceAreCountedUntilTheyHaveOne) {
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("web")}, {Container("web", "id2")});
  EXPECT_EQ(placer_.unplaced().containers, 1U);
  EXPECT_THAT(placer_.unplaced().why, HasSubstr("cannot admit container main of pod default/web"));
  Serve(true);
  placer_.RetryUnplaced();
  test::Settle(state_);
  EXPECT_EQ(placer_.unplaced().containers, 0U);
  EXPECT_EQ(placer_.unplaced().why, "");
}

TEST_F(PodPlacerTest, ContainersThatRunWaitForThePluginsOfBeforeTheStart) {
  test::PluginScript memory;
  memory.gives = AllocationByResource{{"memory", test::NodeMemory({{0, 1 << 20}})}};
  memory.registered_by = RegisteredBy::kCheckpoint;
  memory.live = false;
  plugins_.Set("memory", memory);
  live_.Add(Key("web"), {.id = "id2", .pod_id = "sandbox-web", .started = true});
  PodPlacer patient(parts_, std::chrono::seconds(10), std::chrono::hours(1));
  patient.Adopt({{Pod("web"), Container("web", "id2")}});
  test::Settle(state_);
  EXPECT_FALSE(Known("web")) << "what cpu gives now would bind memory to its nodes";

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
  hasty.Adopt({{Pod("web"), Container("web", "id2")}});
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

TEST_F(PodPlacerTest, ContainerWithoutAPlaceLeavesCpusThatOthersOwn) {
  Refuse(StatusCode::kResourceExhausted);
  Synchronize({Pod("job"), Pod("web")}, {Container("web", "id2")});
  EXPECT_THAT(runtime_.updates(), IsEmpty()) << "nobody owns CPUs";
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  ASSERT_EQ(runtime_.updates().size(), 1U);
  EXPECT_EQ(runtime_.updates()[0].container_id, "id2");
  const CpuSet moved = *CpuSet::Parse(runtime_.updates()[0].resources.cpuset_cpus);
  EXPECT_FALSE(moved.Intersects(CpuSet{0, 1}));
  EXPECT_TRUE(moved.IsSubsetOf(machine_.cpu_set()));
}

TEST_F(PodPlacerTest, ContainerWithoutAPlaceLeavesCpusThatAnotherGotByAReconcile) {
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

TEST_F(PodPlacerTest, ContainerWithoutAPlaceStaysOnCpusThatNobodyElseOwns) {
  Refuse(StatusCode::kResourceExhausted);
  RuntimeContainer pinned = Container("web", "id2");
  pinned.resources.cpuset_cpus = "2-3";
  Synchronize({Pod("job"), Pod("web")}, {pinned});
  Serve(true, true);
  ASSERT_TRUE(Create(Pod("own"), Container("own", "id3")).ok());
  EXPECT_THAT(runtime_.updates(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager
