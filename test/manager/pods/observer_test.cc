#include "manager/pods/observer.h"

#include <functional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/support/fake_runtime.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"

namespace qrm::manager::observer_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Pods "a" and "b" are known; "a" has a cgroup that a test can remove.
class GonePodsTest : public testing::Test {
 protected:
  GonePodsTest() { gone_.NoteCgroup("a", "/kubepods/a"); }

  std::set<std::string> Doubtful(const std::set<std::string>& listed) {
    return gone_.Doubtful({"a", "b"}, listed, now_);
  }

  bool cgroup_is_there_ = true;
  GonePods::Time now_;
  GonePods gone_{[this](const std::string&) -> StatusOr<CgroupCpuset> {
                   if (cgroup_is_there_) {
                     return CgroupCpuset{};
                   }
                   return Errorf(StatusCode::kNotFound, "gone");
                 },
                 seconds(10)};
};

TEST_F(GonePodsTest, PodThatIsMissingOnceIsDoubtful) {
  EXPECT_THAT(Doubtful({"b"}), ElementsAre("a"));
  EXPECT_THAT(Doubtful({"a", "b"}), IsEmpty());
}

TEST_F(GonePodsTest, PodIsGoneWhenItWasMissingLongAndHasNoCgroup) {
  cgroup_is_there_ = false;
  EXPECT_THAT(Doubtful({"b"}), ElementsAre("a"));
  now_ += seconds(11);
  EXPECT_THAT(Doubtful({"b"}), IsEmpty());
}

TEST_F(GonePodsTest, PodIsThereAsLongAsItsCgroupIs) {
  Doubtful({"b"});
  now_ += seconds(1000);
  EXPECT_THAT(Doubtful({"b"}), ElementsAre("a"));
}

TEST_F(GonePodsTest, TimeBeginsAgainForAPodThatWasBack) {
  cgroup_is_there_ = false;
  Doubtful({"b"});
  now_ += seconds(9);
  Doubtful({"a", "b"});
  now_ += seconds(2);
  EXPECT_THAT(Doubtful({"b"}), ElementsAre("a"));
}

TEST_F(GonePodsTest, AnEmptyListProvesNothing) {
  cgroup_is_there_ = false;
  Doubtful({});
  now_ += seconds(1000);
  EXPECT_THAT(Doubtful({}), ElementsAre("b")) << "b's cgroup is unknown; a's is gone";
  EXPECT_THAT(Doubtful({"other"}), IsEmpty());
}

TEST_F(GonePodsTest, ListOfAnotherRuntimeProvesNoMoreThanAnEmptyOne) {
  cgroup_is_there_ = false;
  const auto doubtful = [&] {
    return gone_.Doubtful({"a", "b"}, {"other"}, now_, ListTrust::kMaybeAnothers);
  };
  doubtful();
  now_ += seconds(1000);
  EXPECT_THAT(doubtful(), ElementsAre("b"));
}

// An observer of a runtime that sends no events and answers at once.
class ObserverTest : public testing::Test, public ObservationListener {
 protected:
  void OnObserved(Observation seen) override { seen_.push_back(std::move(seen)); }
  ObserverTest() {
    RuntimePod pod{.id = "sandbox", .uid = "uid", .name = "web"};
    RuntimeContainer container;
    container.id = "id";
    container.pod_id = "sandbox";
    container.name = "main";
    container.state = RuntimeContainerState::kRunning;
    container.cgroups_path = "/kubepods/burstable/poduid/id";
    runtime_.SetContainers({pod}, {container});
  }
  // Runs the loop until `count` observations have been made.
  void RunUntil(std::size_t count) {
    io_.restart();
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    while (seen_.size() < count && std::chrono::steady_clock::now() < end) {
      io_.run_one_for(milliseconds(10));
    }
    ASSERT_GE(seen_.size(), count);
  }

  boost::asio::io_context io_;
  test::FakeRuntime runtime_;
  test::FakeSnapshots state_;
  LiveContainers live_;
  std::vector<Observation> seen_;
  Observer observer_{{.io = io_,
                      .runtime = runtime_,
                      .state = state_,
                      .live = live_,
                      .read_cpuset = [](const std::string&) -> StatusOr<CgroupCpuset> {
                        return CgroupCpuset{.cpus = {2}, .mems = {0}};
                      },
                      .listener = *this},
                     {.period = milliseconds(1), .grace = milliseconds(0)}};
};

TEST_F(ObserverTest, LooksAgainEveryPeriod) {
  observer_.OnNriAway();
  RunUntil(3);
  EXPECT_TRUE(observer_.GetStatus().working);
  EXPECT_FALSE(observer_.GetStatus().has_events);
}

TEST_F(ObserverTest, GivesNewContainersTheKernelsCpusetAndTheirPodItsCgroup) {
  observer_.OnNriAway();
  RunUntil(1);
  ASSERT_THAT(seen_[0].containers, SizeIs(1));
  EXPECT_EQ(seen_[0].containers[0].resources.cpuset_cpus, "2");
  EXPECT_EQ(seen_[0].pods[0].cgroup_parent, "/kubepods/burstable/poduid");
}

TEST_F(ObserverTest, LooksAgainAtKnownContainersOneAfterTheOther) {
  const auto list = [](uint64_t shares) {
    std::vector<RuntimeContainer> containers;
    for (const char* id : {"id1", "id2"}) {
      RuntimeContainer container;
      container.id = id;
      container.pod_id = "sandbox";
      container.name = id;
      container.state = RuntimeContainerState::kRunning;
      container.resources.cpu_shares = shares;
      containers.push_back(std::move(container));
    }
    return containers;
  };
  runtime_.SetContainers({{.id = "sandbox", .uid = "uid", .name = "pod"}}, list(1024));
  Observer by_turns({.io = io_,
                     .runtime = runtime_,
                     .state = state_,
                     .live = live_,
                     .read_cpuset = {},
                     .listener = *this},
                    {.period = milliseconds(1), .grace = milliseconds(0), .values_per_period = 1});
  live_.Add({"uid", "id1"}, {.id = "id1", .pod_id = "sandbox", .started = true});
  live_.Add({"uid", "id2"}, {.id = "id2", .pod_id = "sandbox", .started = true});
  by_turns.OnNriAway();
  RunUntil(2);
  EXPECT_EQ(runtime_.looked_at(), (std::vector<std::string>{"id1", "id2"}));
  by_turns.Stop();
}

TEST_F(ObserverTest, DoubtsKnownPodsThatAreNotListed) {
  state_.Apply(test::Admit(test::SamplePod("lost"), "main", {}));
  observer_.OnNriAway();
  RunUntil(1);
  EXPECT_THAT(seen_[0].doubtful, ElementsAre("uid-lost"));
}

TEST_F(ObserverTest, LooksNeitherWithinTheGraceNorAfterNriIsBack) {
  Observer patient({.io = io_,
                    .runtime = runtime_,
                    .state = state_,
                    .live = live_,
                    .read_cpuset = {},
                    .listener = *this},
                   {.grace = seconds(100)});
  patient.OnNriAway();
  io_.run_for(milliseconds(20));
  EXPECT_FALSE(patient.GetStatus().active);
  patient.OnNriBack();

  observer_.OnNriAway();
  RunUntil(1);
  observer_.OnNriBack();
  seen_.clear();
  io_.restart();
  io_.run_for(milliseconds(20));
  EXPECT_THAT(seen_, IsEmpty());
  EXPECT_FALSE(observer_.GetStatus().working);
}

TEST_F(ObserverTest, BeginsAgainWhenNriGoesAgain) {
  for (int times = 0; times < 2; ++times) {
    seen_.clear();
    observer_.OnNriAway();
    RunUntil(1);
    observer_.OnNriBack();
  }
  observer_.Stop();
  observer_.OnNriAway();
  io_.restart();
  io_.run_for(milliseconds(20));
  EXPECT_FALSE(observer_.GetStatus().active);
}

}  // namespace
}  // namespace qrm::manager::observer_test
