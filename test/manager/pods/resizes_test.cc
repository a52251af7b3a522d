// Requests that change while a container runs, from every source.
#include "manager/pods/resizes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/demand/pod_spec.h"
#include "test/manager/pods/pod_events_fixture.h"

namespace qrm::manager::resizes_test {
namespace {

using test::Container;
using test::Key;
using test::OwnCpus;
using test::Pod;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kNic[] = "example.com/nic";

RuntimeContainer With(RuntimeContainer container, uint64_t cpus) {
  container.resources.cpu_shares = 1024 * cpus;
  return container;
}

/// Estimates, and knows the specs of pods later.
class LateSpecs final : public DemandSource {
 public:
  void Find(const RuntimePod& pod, const RuntimeContainer& container, Deadline /*deadline*/,
            Found found) override {
    found(estimate_.Estimate(pod, container));
  }
  std::optional<placement::ContainerDemand> FindNow(
      const placement::ContainerDemand& recorded) const override {
    const auto known = specs_.find(recorded.pod.uid);
    return known == specs_.end() ? std::nullopt : Refine(recorded, known->second, "", "test");
  }
  uint64_t revision() const override { return revision_; }

  void Tell(const RuntimePod& pod, const StringMap& requests) {
    PodManifest manifest{.uid = pod.uid, .pod_namespace = pod.pod_namespace, .name = pod.name};
    manifest.containers = {{.name = "main", .resources = {.requests = requests, .limits = {}}}};
    specs_[pod.uid] = *ReadManifest(manifest);
    ++revision_;
  }

 private:
  CgroupEstimate estimate_;
  std::map<std::string, PodSpec> specs_;
  uint64_t revision_ = 0;
};

struct HasSpecs {
  LateSpecs specs_;
};

// The container main of pod web requests two CPUs, and the cpu plugin gives it 0-1.
class ResizesTest : protected HasSpecs, public test::PodEventsFixture {
 protected:
  ResizesTest() : PodEventsFixture(specs_) {}
  void SetUp() override {
    Synchronize({}, {});
    ASSERT_TRUE(Create(Pod("web"), Container("web", "id1")).ok());
    events_.OnContainerStarted(Pod("web"), Container("web", "id1"));
    plugins_.ForgetCalls();
  }

  void Refuse() {
    test::PluginScript cpu;
    cpu.gives = Errorf(StatusCode::kResourceExhausted, "no CPU is free");
    plugins_.Set("cpu", cpu);
  }
  static ResourceAllocation Nic() {
    ResourceAllocation nic;
    nic.envs["NIC"] = "eth0";
    return nic;
  }
  void ServeNic() {
    test::PluginScript nic;
    nic.gives = AllocationByResource{{kNic, Nic()}};
    plugins_.Set(kNic, nic);
  }
  void Give(const ResourceAllocation& allocation) {
    test::PluginScript cpu;
    cpu.gives = AllocationByResource{{"cpu", allocation}};
    plugins_.Set("cpu", cpu);
  }
  void Resize(const LinuxResources& requested) {
    Update(Pod("web"), Container("web", "id1"), requested);
    test::Settle(state_);
  }
  /// What each full reconcile does.
  void Reconcile(PodPlacer& placer) {
    test::RunOn(state_, [&] { placer.CompareAllRequests(); });
    test::Settle(state_);
  }
  void Reconcile() { Reconcile(placer_); }
  checkpoint::ContainerRecord Record() const { return *state_.Load()->Find(Key("web")); }
  double Requested() const { return Record().requests.at("cpu"); }
  PendingStatus Pending() const { return placer_.resizes().GetStatus(); }
};

TEST_F(ResizesTest, AContainerThatGrewWhileQrmdWasNotRunningGetsMore) {
  Synchronize({Pod("web")}, {With(Container("web", "id1"), 4)});
  Reconcile();
  EXPECT_EQ(plugins_.allocated("cpu").quantity(), 4);
  EXPECT_EQ(Requested(), 4);
}

TEST_F(ResizesTest, AContainerThatGrewWhileItsPluginWasNotRunningGetsMoreOnceThatIsBack) {
  Serve(false);
  Resize({.cpu_shares = 4096});
  EXPECT_EQ(Pending().containers, 1U);
  EXPECT_THAT(Pending().why, HasSubstr("is not running"));
  Serve(true);
  placer_.OnPluginRegistered("cpu");
  test::Settle(state_);
  test::Settle(state_);
  EXPECT_EQ(Requested(), 4);
  EXPECT_EQ(Pending().containers, 0U);
}

TEST_F(ResizesTest, AContainerThatTheObserverSeesGrownGetsMore) {
  inventory_.OnObserved(
      {.pods = {Pod("web")}, .containers = {With(Container("web", "id1"), 4)}, .doubtful = {}});
  Reconcile();
  EXPECT_EQ(Requested(), 4);
}

TEST_F(ResizesTest, AContainerThatCrashesIsRecreatedWithWhatItHasWhereMoreIsRejected) {
  Refuse();
  Resize({.cpu_shares = 4096});
  events_.OnContainerStopped(Pod("web"), Container("web", "id1"));
  const auto again = Create(Pod("web"), With(Container("web", "id2"), 4));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->resources.cpuset_cpus, "0-1");
  EXPECT_EQ(Requested(), 2);
  test::Settle(state_);
  EXPECT_EQ(Pending().containers, 1U) << "the missing resource is reported";
}

TEST_F(ResizesTest, TheDecisionIsKeptAsOneForAResize) {
  Resize(With(Container("web", "id1"), 4).resources);
  test::Settle(state_);
  const auto traces = decisions_.log.Read();
  ASSERT_FALSE(traces.empty());
  EXPECT_THAT(traces.back().json, testing::HasSubstr(R"("moment":"resize")"));
}

TEST_F(ResizesTest, PluginsAreNotifiedOfSmallerRequests) {
  Resize({.cpu_shares = 1024});
  EXPECT_EQ(plugins_.allocated("cpu").quantity(), 1);
  EXPECT_EQ(Requested(), 1);
}

TEST_F(ResizesTest, CpusThatTheMachineLostAreAskedForAgain) {
  ResourceAllocation part = OwnCpus("0");
  part.lacks = 1;
  test::RunOn(state_, [&] {
    checkpoint::ContainerRecord record = Record();
    record.allocations.at("cpu") = part;
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  Refuse();
  Reconcile();
  EXPECT_EQ(Pending().containers, 1U);
  Give(OwnCpus("0,2"));
  Reconcile();
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0,2");
  EXPECT_EQ(Pending().containers, 0U);
  plugins_.ForgetCalls();
  Reconcile();
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(ResizesTest, AGrowingLimitWithoutARequestIsSentToThePlugin) {
  Resize({.cpu_shares = 2048, .cpu_quota_us = 400000, .cpu_period_us = 100000});
  EXPECT_EQ(plugins_.allocated("cpu").limit, 4);
  EXPECT_EQ(Record().limits.at("cpu"), 4);
}

TEST_F(ResizesTest, AContainerWithCpusAndAPoolBesideThemGrows) {
  ResourceAllocation own = OwnCpus("0-1");
  own.envs = {{"QRM_OWN_CPUS", "0-1"}};
  Give(own);
  Resize({.cpu_shares = 3072});
  plugins_.ForgetCalls();
  own.value = "0-3";
  own.envs = {{"QRM_OWN_CPUS", "0-3"}};
  Give(own);
  Resize({.cpu_shares = 4096});
  EXPECT_THAT(plugins_.calls(), Contains("allocate cpu"));
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0-3");
}

TEST_F(ResizesTest, ALateSpecShowsWhatARunningContainerIsMissing) {
  ServeNic();
  Reconcile();
  EXPECT_FALSE(admitter_.Lacks(Record(), kNic));
  specs_.Tell(Pod("web"), {{"cpu", "2"}, {kNic, "1"}});
  Reconcile();
  EXPECT_TRUE(admitter_.Lacks(Record(), kNic)) << "it was made without it";
  plugins_.ForgetCalls();
  Reconcile();
  Reconcile();
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate example.com/nic"))) << "it cannot have it";
}

TEST_F(ResizesTest, AResizeWithoutRoomIsTriedAgainWhenRoomComes) {
  Refuse();
  Resize({.cpu_shares = 4096});
  EXPECT_EQ(Pending().containers, 1U);
  EXPECT_THAT(Pending().why, HasSubstr("no CPU is free"));
  EXPECT_EQ(placer_.resizes().WhyPending(Key("web")), Pending().why);
  Serve(true);
  Reconcile();
  EXPECT_EQ(Requested(), 4);
  EXPECT_EQ(Pending().containers, 0U);
  EXPECT_THAT(placer_.resizes().WhyPending(Key("web")), IsEmpty());
}

TEST_F(ResizesTest, NothingIsTriedAgainByItselfWhereThatIsSwitchedOff) {
  PodPlacer once(parts_, std::chrono::seconds(10), {}, ResizeRetries::kOff);
  Refuse();
  live_.NoteShown(Key("web"), "id1", {.cpu_shares = 4096, .by_event = true});
  Reconcile(once);
  EXPECT_EQ(once.resizes().GetStatus().containers, 1U);
  Serve(true);
  plugins_.ForgetCalls();
  Reconcile(once);
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  EXPECT_EQ(once.resizes().GetStatus().containers, 1U);
  live_.NoteShown(Key("web"), "id1", {.cpu_shares = 3072, .by_event = true});
  Reconcile(once);
  EXPECT_EQ(Requested(), 3) << "it was resized again";
}

TEST_F(ResizesTest, APluginIsNotAskedAboutContainersWithUnchangedRequests) {
  Reconcile();
  Reconcile();
  Synchronize({Pod("web")}, {Container("web", "id1")});
  Reconcile();
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(ResizesTest, AListThatContradictsSpecAndRecordIsNotTrusted) {
  specs_.Tell(Pod("web"), {{"cpu", "2"}});
  Reconcile();
  RuntimeContainer old = With(Container("web", "id1"), 1);
  old.resources.cpu_period_us = 100000;
  Synchronize({Pod("web")}, {old});
  Reconcile();
  EXPECT_EQ(Requested(), 2);
}

TEST_F(ResizesTest, WhatARunningContainerCannotTakeWaitsUntilItIsRecreated) {
  ServeNic();
  specs_.Tell(Pod("web"), {{"cpu", "2"}, {kNic, "1"}});
  test::RunOn(state_, [&] {
    checkpoint::ContainerRecord record = Record();
    record.requests.Edit()[kNic] = 1;
    record.allocations.emplace(kNic, Nic());
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  Reconcile();
  EXPECT_EQ(Pending().containers, 0U);
  specs_.Tell(Pod("web"), {{"cpu", "2"}, {kNic, "2"}});
  Reconcile();
  EXPECT_THAT(Pending().why, HasSubstr("gets more of example.com/nic only when it is recreated"));
}

// The container main of pod web has CPUs 2-3 of a compute driver.
class DriverResizesTest : public ResizesTest {
 protected:
  void SetUp() override {
    placement::AdmissionOptions options;
    options.drivers["fast"] = {.default_namespaces = {"default"}};
    admitter_.TakeRules(options);
    Answer({2, 3});
    ResizesTest::SetUp();
  }
  void Answer(StatusOr<sdk::ComputeGrant> answer) {
    test::PluginScript driver;
    driver.options = {.pre_start_required = true, .resizes = true};
    driver.computes = std::move(answer);
    plugins_.Set(kFast, driver);
  }
  void Answer(CpuSet cpus) { Answer(sdk::ComputeGrant{.parts = {{.cpus = std::move(cpus)}}}); }
  void Review() {
    test::RunOn(state_, [&] { placer_.resizes().Review(kFast); });
    test::Settle(state_);
  }
  std::string Cpus() const { return Record().allocations.at(kFast)->value; }
  std::size_t Asked() const {
    const auto calls = plugins_.calls();
    return static_cast<std::size_t>(
        std::count(calls.begin(), calls.end(), "admit cci.qrm.io/fast uid-web/main"));
  }

  static constexpr char kFast[] = "cci.qrm.io/fast";
};

TEST_F(DriverResizesTest, ADriverIsAskedAndToldWhatTheContainerHasNow) {
  Answer({2, 3, 4});
  Resize({.cpu_shares = 3072});
  EXPECT_EQ(Cpus(), "2-4");
  EXPECT_THAT(plugins_.calls(), Contains("add cci.qrm.io/fast uid-web/main=2-4"));
  EXPECT_EQ(Pending().containers, 0U);
}

TEST_F(DriverResizesTest, WhatADriverRejectsIsPendingAndTriedAgain) {
  Answer(Errorf(StatusCode::kFailedPrecondition, "the core is taken"));
  Resize({.cpu_shares = 3072});
  EXPECT_THAT(Pending().why, HasSubstr("the core is taken"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("add "))));
  Answer({2, 3, 4});
  Reconcile();
  EXPECT_EQ(Cpus(), "2-4");
  EXPECT_EQ(Pending().containers, 0U);
}

TEST_F(DriverResizesTest, WithoutTheOptionMoreWaitsUntilTheContainerIsRecreated) {
  plugins_.Set(kFast, test::PluginScript());
  Resize({.cpu_shares = 3072});
  EXPECT_EQ(Asked(), 0U);
  EXPECT_THAT(Pending().why, HasSubstr("only when it is recreated"));
}

TEST_F(DriverResizesTest, ADriversOwnRequestIsAChangeOnceASecond) {
  Answer({2});
  Review();
  EXPECT_EQ(Cpus(), "2");
  EXPECT_THAT(plugins_.calls(), Contains("add cci.qrm.io/fast uid-web/main=2"));
  EXPECT_EQ(Requested(), 2);
  Answer({2, 3});
  Review();
  EXPECT_EQ(Cpus(), "2") << "too soon";
  EXPECT_EQ(Asked(), 1U);
}

TEST_F(DriverResizesTest, WhatADriverWantsAndMayNotGiveIsNoPendingResize) {
  Answer({2, 3, 4});
  Review();
  EXPECT_EQ(Asked(), 1U);
  EXPECT_EQ(Cpus(), "2-3");
  EXPECT_EQ(Pending().containers, 0U);
}

TEST_F(DriverResizesTest, ADriverThatDoesNotAnswerIsNotAskedAboutItsOtherContainers) {
  Answer({4, 5});
  ASSERT_TRUE(Create(Pod("other"), Container("other", "id2")).ok());
  events_.OnContainerStarted(Pod("other"), Container("other", "id2"));
  plugins_.ForgetCalls();
  Answer(Errorf(StatusCode::kDeadlineExceeded, "no answer"));
  Review();
  const auto calls = plugins_.calls();
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const std::string& call) { return call.starts_with("admit"); }),
            1);
}

}  // namespace
}  // namespace qrm::manager::resizes_test
