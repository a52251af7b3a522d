// Admissions of containers that a compute driver places.
#include "manager/admission/driver_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/admission/admitter_fixture.h"
#include "test/support/is_ok.h"

namespace qrm::test::driver_step_test {
namespace {

using placement::WhenMissing;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kFast[] = "cci.qrm.io/fast";

// Driver fast gives CPUs 2-3; it is registered, and namespace default may ask for it.
class DriverStepTest : public AdmitterTest {
 protected:
  DriverStepTest() {
    options_.drivers["fast"] = {.namespaces = {"default"}};
    PluginScript driver;
    driver.computes = sdk::ComputeGrant{.parts = {{.cpus = {2, 3}}}, .envs = {{"FAST", "yes"}}};
    plugins_.Set(kFast, driver);
  }

  static placement::ContainerDemand Asking() {
    placement::ContainerDemand demand = Demand();
    demand.pod.annotations.Edit()["cci.qrm.io/driver"] = "fast";
    return demand;
  }
  void Change(const std::function<void(PluginScript&)>& change) {
    PluginScript driver;
    driver.computes = sdk::ComputeGrant{.parts = {{.cpus = {2, 3}}}};
    change(driver);
    plugins_.Set(kFast, driver);
  }
  /// How often the removal was reported as done.
  int RemoveWeb() {
    int done = 0;
    EXPECT_TRUE(
        IsOk(RunOn(state_, [&] { return releaser_.RemovePods({"uid-web"}, [&] { ++done; }); })));
    Settle(state_);
    return done;
  }

  placement::AdmissionOptions options_;
};

TEST_F(DriverStepTest, ADriverIsAskedInsteadOfTheCpuPluginWhichWithholdsItsCpus) {
  const auto admitted = Admit(Asking(), options_);
  ASSERT_TRUE(IsOk(admitted.status()));
  EXPECT_EQ(admitted->properties.at("CpusetCpus"), "2-3");
  EXPECT_EQ(admitted->envs.at("FAST"), "yes");
  const std::vector<std::string> calls = plugins_.calls();
  EXPECT_THAT(calls, AllOf(Contains("admit cci.qrm.io/fast uid-web/main"),
                           Contains("restore cpu uid-web/main=2-3"), Contains("allocate memory"),
                           Not(Contains("allocate cpu")), Not(Contains("hints cpu"))));
}

TEST_F(DriverStepTest, TheRecordNamesTheDriverAndTheCpuPlugin) {
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  const checkpoint::ContainerRecord* record = Record(Asking());
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->PluginOf(kFast), kFast);
  EXPECT_EQ(record->PluginOf("cpu"), "cpu");
  EXPECT_TRUE(record->allocations.at("cpu")->exclusive);
}

TEST_F(DriverStepTest, ARepeatedRequestAsksNoDriver) {
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  plugins_.ForgetCalls();
  EXPECT_EQ(Admit(Asking(), options_)->properties.at("CpusetCpus"), "2-3");
  EXPECT_THAT(plugins_.calls(), ElementsAre());
}

TEST_F(DriverStepTest, AContainerWithoutDriverIsPlacedByTheCpuPlugin) {
  ASSERT_TRUE(IsOk(Admit(Demand(), options_).status()));
  EXPECT_THAT(plugins_.calls(),
              ElementsAre("hints cpu", "hints memory", "allocate cpu", "allocate memory"));
}

TEST_F(DriverStepTest, AnAnswerThatWasNotOfferedIsRejectedAndTakenBack) {
  Change([](PluginScript& driver) {
    driver.computes = sdk::ComputeGrant{.parts = {{.cpus = {2, 9}}}};
  });
  EXPECT_THAT(Rejection(Asking(), options_), HasSubstr("of which 9 were not offered"));
  EXPECT_THAT(plugins_.calls(),
              AllOf(Contains("end cci.qrm.io/fast uid-web/"), Contains("suspect cci.qrm.io/fast"),
                    Not(Contains(HasSubstr("restore")))));
  EXPECT_EQ(Record(Asking()), nullptr);
}

TEST_F(DriverStepTest, ARejectionIsTheDriversRight) {
  Change([](PluginScript& driver) {
    driver.computes = Status(StatusCode::kFailedPrecondition, "the moon is full");
  });
  EXPECT_THAT(Rejection(Asking(), options_), HasSubstr("the moon is full"));
  EXPECT_THAT(plugins_.calls(), Not(Contains("suspect cci.qrm.io/fast")));
}

TEST_F(DriverStepTest, ACpuPluginThatCannotWithholdRejects) {
  PluginScript cpu = Gives("cpu", Pin(kCpusetCpus, "0-1"));
  cpu.restores = Status(StatusCode::kUnimplemented, "no such call");
  plugins_.Set("cpu", cpu);
  EXPECT_THAT(Rejection(Asking(), options_),
              HasSubstr("it does not withhold the CPUs that the compute driver gave"));
}

TEST_F(DriverStepTest, AMissingDriverRejectsUnlessItsPodsMayFallBack) {
  plugins_.Drop(kFast);
  EXPECT_THAT(Rejection(Asking(), options_), HasSubstr("compute driver fast is not registered"));
  options_.drivers["fast"].when_missing = placement::WhenMissing::kFallBack;
  EXPECT_EQ(Admit(Asking(), options_)->properties.at("CpusetCpus"), "0-1");
  EXPECT_THAT(LastTrace()["driver"]["fallback"], HasSubstr("is not registered"));
}

TEST_F(DriverStepTest, ARejectionNeverFallsBack) {
  options_.drivers["fast"].when_missing = placement::WhenMissing::kFallBack;
  Change([](PluginScript& driver) { driver.computes = Status(StatusCode::kUnavailable, "no"); });
  EXPECT_FALSE(Admit(Asking(), options_).ok());
}

TEST_F(DriverStepTest, ANamespaceWithoutPermissionIsRejected) {
  options_.drivers.clear();
  EXPECT_THAT(Rejection(Asking(), options_),
              HasSubstr("does not allow compute driver fast in namespace default"));
}

TEST_F(DriverStepTest, ARunningContainerIsNotSaidToHaveVariablesThatItWasMadeWithout) {
  placement::ContainerDemand running = Asking();
  running.runtime_id = "4f3c2b1a";
  ASSERT_TRUE(IsOk(Admit(running, options_, Admitter::Moment::kAfterTheFact).status()));
  EXPECT_THAT(LastTrace()["too_late_for"], ElementsAre("variables of cci.qrm.io/fast"));
  EXPECT_EQ(Record(running)->allocations.at(kFast)->value, "2-3") << "its CPUs it gets";
  EXPECT_EQ(Admit(Asking(), options_)->envs.at("FAST"), "yes") << "when it is recreated";
}

TEST_F(DriverStepTest, ARunningContainerThatWasMadeWithItsDriversVariablesHasThem) {
  placement::ContainerDemand running = Asking();
  running.runtime_id = "4f3c2b1a";
  running.made_with.env = {"FAST=yes"};
  ASSERT_TRUE(IsOk(Admit(running, options_, Admitter::Moment::kAfterTheFact).status()));
  EXPECT_FALSE(LastTrace().contains("too_late_for"));
}

TEST_F(DriverStepTest, ARejectionEndsThePodWhereTheDriversRuleSaysSo) {
  Change([](PluginScript& driver) {
    driver.computes = Status(StatusCode::kFailedPrecondition, "the moon is full");
  });
  EXPECT_FALSE(Admit(Asking(), options_).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt) << "it is retried by default";
  options_.drivers["fast"].reject_as = placement::RejectAs::kFail;
  EXPECT_FALSE(Admit(Asking(), options_).ok());
  EXPECT_EQ(events_.back().ends_pod_of, Asking().key());
  options_.drivers["fast"].reject_as = placement::RejectAs::kRetry;
  options_.reject_as = placement::RejectAs::kFail;
  EXPECT_FALSE(Admit(Asking(), options_).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt) << "the driver's rule comes first";
}

TEST_F(DriverStepTest, APodIsRetriedWhileItsDriverDoesNotRunOrAnswersWrongly) {
  options_.drivers["fast"].reject_as = placement::RejectAs::kFail;
  Change([](PluginScript& driver) { driver.live = false; });
  EXPECT_FALSE(Admit(Asking(), options_).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt);
  Change([](PluginScript& driver) {
    driver.computes = sdk::ComputeGrant{.parts = {{.cpus = {2, 9}}}};
  });
  EXPECT_FALSE(Admit(Asking(), options_).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt);
}

TEST_F(DriverStepTest, ARunningContainerNeverEndsItsPod) {
  options_.drivers["fast"].reject_as = placement::RejectAs::kFail;
  Change([](PluginScript& driver) {
    driver.computes = Status(StatusCode::kFailedPrecondition, "the moon is full");
  });
  EXPECT_FALSE(Admit(Asking(), options_, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt);
}

TEST_F(DriverStepTest, UnmetWishesAreExplained) {
  Change([](PluginScript& driver) {
    driver.computes =
        sdk::ComputeGrant{.parts = {{.cpus = {2}}}, .unmet = {{"no-irq", "it is managed"}}};
  });
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  EXPECT_EQ(LastTrace()["driver"]["unmet"][0]["wish"], "no-irq");
  EXPECT_EQ(LastTrace()["driver"]["offered"], "1-7");
}

TEST_F(DriverStepTest, AWarningIsExplainedAndIsForTheEventsOfThePod) {
  Change([](PluginScript& driver) {
    driver.computes = sdk::ComputeGrant{.parts = {{.cpus = {2}}}, .warnings = {"2 is a count"}};
  });
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  EXPECT_EQ(LastTrace()["driver"]["warnings"][0], "2 is a count");
  ASSERT_EQ(events_.back().warnings.size(), 1U);
  EXPECT_EQ(events_.back().warnings[0].message, "container main of pod default/web: 2 is a count");
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  EXPECT_TRUE(events_.back().warnings.empty()) << "a repeated request warns no more";
}

// Containers after the pod's first one have the type of sidecars.
TEST_F(DriverStepTest, ASecondAppContainerHasTheDriverOfItsPod) {
  placement::ContainerDemand second = Asking();
  second.container = "second";
  second.type = ContainerType::kSidecar;
  ASSERT_TRUE(IsOk(Admit(second, options_).status()));
  EXPECT_THAT(plugins_.calls(), Contains("admit cci.qrm.io/fast uid-web/second"));
  EXPECT_EQ(plugins_.computed().type, ContainerType::kMain) << "the driver sees an app container";
}

TEST_F(DriverStepTest, ADriverSeesAllRequestsAndTheKindOfThePod) {
  placement::ContainerDemand demand = Asking();
  demand.requests = std::map<std::string, double>{
      {"cpu", 2}, {"memory", 1 << 20}, {"hugepages-2Mi", 4 << 20}, {"nvidia.com/gpu", 1}};
  demand.limits = std::map<std::string, double>{{"cpu", 2}};
  demand.pod.qos_class = "Burstable";
  demand.runtime_class = "gold";
  demand.pod.annotations.Edit()["qrm.io/device-nodes"] =
      R"({"main": {"nvidia.com/gpu": "1"}, "other": {"nvidia.com/gpu": "0"}})";
  ASSERT_TRUE(IsOk(Admit(demand, options_).status()));
  const sdk::ComputeRequest seen = plugins_.computed();
  EXPECT_EQ(seen.requests, *demand.requests);
  EXPECT_EQ(seen.limits, *demand.limits);
  EXPECT_EQ(seen.qos_class + " " + seen.runtime_class, "Burstable gold");
  EXPECT_EQ(seen.device_nodes, (std::map<std::string, NumaMask>{{"nvidia.com/gpu", {1}}}));
}

TEST_F(DriverStepTest, ADriversOwnHintsAreMerged) {
  options_.merge.policy = TopologyPolicy::kSingleNumaNode;
  Change([](PluginScript& driver) {
    driver.options = {.with_topology_alignment = true};
    driver.hints = HintList(std::vector<TopologyHint>{{.nodes = {1}, .preferred = true}});
    driver.computes = sdk::ComputeGrant{.parts = {{.cpus = {5}}}};
  });
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  EXPECT_THAT(plugins_.calls(), Contains("hints cci.qrm.io/fast uid-web/main"));
  EXPECT_EQ(plugins_.computed().hint.nodes, NumaMask{1});
  EXPECT_EQ(plugins_.computed().available, CpuSet::Range(4, 7));
}

TEST_F(DriverStepTest, ADriverThatHintsAtNoNodeRejects) {
  Change([](PluginScript& driver) {
    driver.options = {.with_topology_alignment = true};
    driver.hints = Status(StatusCode::kFailedPrecondition, "no clock runs");
  });
  EXPECT_THAT(Rejection(Asking(), options_), HasSubstr("no clock runs"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("admit"))));
}

// --- changes of running containers

// The container has CPUs 2-3, and its driver changes CPUs of running containers.
class DriverResizeTest : public DriverStepTest {
 protected:
  void SetUp() override {
    Answer({2, 3});
    ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
    plugins_.ForgetCalls();
  }
  void Answer(StatusOr<sdk::ComputeGrant> answer) {
    Change([&](PluginScript& driver) {
      driver.options = {.pre_start_required = true, .resizes = true};
      driver.computes = std::move(answer);
    });
  }
  void Answer(CpuSet cpus) { Answer(sdk::ComputeGrant{.parts = {{.cpus = std::move(cpus)}}}); }
  static placement::ContainerDemand With(double cpus) {
    placement::ContainerDemand demand = Asking();
    demand.requests.Edit()["cpu"] = cpus;
    demand.runtime_id = "4f3c2b1a";
    return demand;
  }
  Status Resize(const placement::ContainerDemand& demand) {
    return Admit(demand, options_, Admitter::Moment::kForResize).status();
  }
  Status Review() { return Admit(With(2), options_, Admitter::Moment::kForReview).status(); }
  std::string Cpus(const std::string& resource) {
    return Record(Asking())->allocations.at(resource)->value;
  }
};

TEST_F(DriverResizeTest, ADriverIsAskedToGrowItsContainer) {
  Answer({2, 3, 4});
  ASSERT_TRUE(IsOk(Resize(With(3))));
  EXPECT_EQ(plugins_.computed().current, (CpuSet{2, 3}));
  EXPECT_EQ(plugins_.computed().available, CpuSet::Range(1, 7));
  EXPECT_EQ(plugins_.computed().milli_cpus, 3000);
  EXPECT_THAT(plugins_.calls(), Contains("restore cpu uid-web/main=2-4"));
  EXPECT_EQ(Cpus(kFast) + " " + Cpus("cpu"), "2-4 2-4");
  EXPECT_EQ(Record(Asking())->requests.at("cpu"), 3);
}

TEST_F(DriverResizeTest, ADriverIsAskedToShrinkItsContainer) {
  Answer({3});
  ASSERT_TRUE(IsOk(Resize(With(1))));
  EXPECT_EQ(Cpus(kFast) + " " + Cpus("cpu"), "3 3");
}

TEST_F(DriverResizeTest, AContainerWhoseDriverRefusesKeepsItsCpus) {
  Answer(Status(StatusCode::kFailedPrecondition, "the core is taken"));
  EXPECT_THAT(MessageOf(Resize(With(3))),
              AllOf(HasSubstr("cannot resize"), HasSubstr("the core is taken")));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("end "))));
  EXPECT_EQ(Cpus(kFast) + " " + Cpus("cpu"), "2-3 2-3");
  EXPECT_EQ(Record(Asking())->requests.at("cpu"), 2);
}

TEST_F(DriverResizeTest, AnAnswerBeyondTheRequestIsRejected) {
  Answer({2, 3, 4, 5});
  EXPECT_THAT(MessageOf(Resize(With(3))), HasSubstr("it gave 4 CPUs (2-5)"));
  EXPECT_THAT(plugins_.calls(), Contains("suspect cci.qrm.io/fast"));
  EXPECT_EQ(Cpus(kFast), "2-3");
}

TEST_F(DriverResizeTest, TheCpuPluginIsTaughtTheFormerCpusWhereAnotherPluginRejects) {
  PluginScript memory;
  memory.gives = Status(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", memory);
  Answer({2, 3, 4});
  placement::ContainerDemand larger = With(3);
  larger.requests.Edit()["memory"] = 2 << 20;
  EXPECT_THAT(MessageOf(Resize(larger)), HasSubstr("no memory"));
  EXPECT_EQ(plugins_.calls().back(), "restore cpu uid-web/main=2-3");
  EXPECT_EQ(Cpus("cpu"), "2-3");
}

TEST_F(DriverResizeTest, ADriverWithoutTheOptionIsNotAsked) {
  Change([](PluginScript&) {});
  ASSERT_TRUE(IsOk(Resize(With(3))));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("admit"))));
  EXPECT_EQ(Record(Asking())->requests.at("cpu"), 2);
}

TEST_F(DriverResizeTest, AMissingDriverLeavesAResizePendingAlsoWithAFallback) {
  options_.drivers["fast"].when_missing = WhenMissing::kFallBack;
  Change([](PluginScript& driver) {
    driver.options.resizes = true;
    driver.live = false;
  });
  EXPECT_THAT(MessageOf(Resize(With(3))), HasSubstr("compute driver fast"));
  EXPECT_EQ(Cpus(kFast), "2-3");
}

TEST_F(DriverResizeTest, ANamespaceThatMayNotAskAnyMoreGetsLessAndNotMore) {
  options_.drivers.clear();
  Answer({2, 3, 4});
  EXPECT_THAT(MessageOf(Resize(With(3))), HasSubstr("does not allow compute driver fast"));
  Answer({2});
  ASSERT_TRUE(IsOk(Resize(With(1))));
  EXPECT_EQ(Cpus(kFast), "2");
}

TEST_F(DriverResizeTest, ADriverTakesCpusBackByItselfAlsoOnAFullNode) {
  PluginScript cpu = Gives("cpu", Pin(kCpusetCpus, "0-1"));
  cpu.pools = std::vector<sdk::Pool>{{.name = "default", .cpus = {1}}};
  plugins_.Set("cpu", cpu);
  Answer({2});
  ASSERT_TRUE(IsOk(Review()));
  EXPECT_EQ(Cpus(kFast) + " " + Cpus("cpu"), "2 2");
  EXPECT_EQ(Record(Asking())->requests.at("cpu"), 2) << "it may get them again";
}

TEST_F(DriverResizeTest, AReviewWithTheSameAnswerIsNoDecision) {
  const auto before = decisions_.log.Read().size();
  ASSERT_TRUE(IsOk(Review()));
  EXPECT_EQ(decisions_.log.Read().size(), before);
  EXPECT_THAT(plugins_.calls(), Contains("admit cci.qrm.io/fast uid-web/main"));
}

TEST_F(DriverResizeTest, AReviewKeepsWhatTheRuntimeHasTaken) {
  const auto applied = Record(Asking())->applied;
  ASSERT_FALSE(applied.empty());
  Answer({2});
  ASSERT_TRUE(IsOk(Review()));
  EXPECT_EQ(Record(Asking())->applied, applied) << "a container that shrinks does so first";
}

// --- the end

TEST_F(DriverStepTest, APodThatIsGoneStaysUntilItsDriverHasTakenTheRemoval) {
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  Change([](PluginScript& driver) { driver.ends = Status(StatusCode::kUnavailable, "busy"); });
  EXPECT_EQ(RemoveWeb(), 0);
  EXPECT_NE(Record(Asking()), nullptr);
  EXPECT_THAT(plugins_.calls(), Not(Contains("remove cpu uid-web")));
  Change([](PluginScript&) {});
  RunOn(state_, [&] {
    EXPECT_FALSE(releaser_.RemovalIsDue()) << "the driver is not asked for a while";
    releaser_.Replay(kFast);
    EXPECT_TRUE(releaser_.RemovalIsDue());
  });
  EXPECT_EQ(RemoveWeb(), 1);
  EXPECT_EQ(Record(Asking()), nullptr);
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
}

TEST_F(DriverStepTest, NoAdmissionWaitsForADriverThatIsNotifiedOfARemoval) {
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  RunOn(state_, [&] {
    EXPECT_TRUE(IsOk(releaser_.RemovePods({"uid-web"})));
    EXPECT_THAT(plugins_.calls(), Contains("end cci.qrm.io/fast uid-web/main"));
    EXPECT_NE(Record(Asking()), nullptr);
  });
  Settle(state_);
  EXPECT_EQ(Record(Asking()), nullptr);
}

TEST_F(DriverStepTest, AnAdmissionThatNeedsTheRoomWaitsForTheDriver) {
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  int done = 0;
  RunOn(state_, [&] {
    EXPECT_TRUE(IsOk(releaser_.RemovePods({"uid-web"}, [&] { ++done; })));
    releaser_.FinishRemovalOf("uid-other");
    EXPECT_NE(Record(Asking()), nullptr);
    EXPECT_TRUE(releaser_.FinishRemovals());
    EXPECT_EQ(Record(Asking()), nullptr);
    EXPECT_FALSE(releaser_.FinishRemovals());
  });
  Settle(state_);
  EXPECT_EQ(done, 1) << "the former answer does not count any more";
}

TEST_F(DriverStepTest, APodThatReturnsIsAdmittedAgainOnceItsDriverHasTakenTheRemoval) {
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  RunOn(state_, [&] {
    EXPECT_TRUE(IsOk(releaser_.RemovePods({"uid-web"})));
    releaser_.FinishRemovalOf("uid-web");
  });
  ASSERT_TRUE(IsOk(Admit(Asking(), options_).status()));
  Settle(state_);
  EXPECT_NE(Record(Asking()), nullptr);
}

}  // namespace
}  // namespace qrm::test::driver_step_test
