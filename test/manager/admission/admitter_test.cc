#include "manager/admission/admitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/admission/request_rules.h"
#include "test/manager/admission/admitter_fixture.h"

namespace qrm::manager::admitter_test {
namespace {

using checkpoint::Change;
using test::AdmitterTest;
using test::Demand;
using test::Gives;
using test::Pin;
using test::PluginScript;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::Pair;

std::vector<std::string> StepsOf(const nlohmann::json& trace) {
  std::vector<std::string> steps;
  for (const nlohmann::json& step : trace["steps"]) {
    steps.push_back(step["step"]);
  }
  return steps;
}

TEST_F(AdmitterTest, AsksHintsOfAllPluginsBeforeItAllocates) {
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(plugins_.calls(),
              ElementsAre("hints cpu", "hints memory", "allocate cpu", "allocate memory"));
  EXPECT_THAT(admitted->properties,
              ElementsAre(Pair("CpusetCpus", "0-1"), Pair("CpusetMems", "0")));
}

TEST_F(AdmitterTest, MakesOneCommitAndKeepsTheDecisionWithWhatItTook) {
  ASSERT_TRUE(Admit(Demand()).ok());
  ASSERT_EQ(journal_.commits(), 1u);
  EXPECT_EQ(journal_.changes().front().put_containers.size(), 1u);
  const auto decisions = decisions_.log.Read();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_TRUE(decisions.front().admitted);
  EXPECT_TRUE(decisions.front().commit.has_value());
}

TEST_F(AdmitterTest, CommitsBeforeItPublishesAndPublishesBeforeItAnswers) {
  bool published_at_commit = true;
  journal_.on_commit = [&](const Change&) {
    published_at_commit = state_.Load()->Find(Demand().key()) != nullptr;
  };
  Admitter admitter = MakeAdmitter();
  const bool published_at_answer = test::RunOn(state_, [&] {
    const auto admitted = admitter.Admit(Demand(), Admitter::Moment::kAtCreation,
                                         DeadlineAfter(std::chrono::seconds(10)));
    return admitted.ok() && state_.Load()->Find(Demand().key()) != nullptr;
  });
  EXPECT_FALSE(published_at_commit);
  EXPECT_TRUE(published_at_answer);
}

TEST_F(AdmitterTest, SendsTheMergedHintToAlignedPluginsOnly) {
  PluginScript cpu = Gives("cpu", Pin(kCpusetCpus, "4-5"));
  cpu.hints = HintList({{.nodes = {1}, .preferred = true}});
  plugins_.Set("cpu", cpu);
  PluginScript memory = Gives("memory", Pin(kCpusetMems, "1"));
  memory.options.with_topology_alignment = false;
  plugins_.Set("memory", memory);
  ASSERT_TRUE(Admit(Demand()).ok());
  EXPECT_THAT(plugins_.calls(), Not(Contains("hints memory")));
  EXPECT_THAT(plugins_.allocated("cpu").hint, Optional(Field(&TopologyHint::nodes, NumaMask({1}))));
  EXPECT_FALSE(plugins_.allocated("memory").hint.has_value());
}

TEST_F(AdmitterTest, SendsAllNodesUnderPolicyNoneWithoutAskingForHints) {
  ASSERT_TRUE(Admit(Demand(), {.merge = {.policy = TopologyPolicy::kNone}}).ok());
  EXPECT_THAT(plugins_.calls(), ElementsAre("allocate cpu", "allocate memory"));
  EXPECT_THAT(plugins_.allocated("cpu").hint,
              Optional(Field(&TopologyHint::nodes, NumaMask({0, 1}))));
}

TEST_F(AdmitterTest, AnswersARepeatedRequestFromTheState) {
  ASSERT_TRUE(Admit(Demand()).ok());
  plugins_.ForgetCalls();
  const auto again = Admit(Demand());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->properties.at("CpusetCpus"), "0-1");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  EXPECT_EQ(journal_.commits(), 1u);
}

TEST_F(AdmitterTest, AsksAgainOnlyForWhatTheRecordDoesNotCover) {
  ASSERT_TRUE(Admit(Demand()).ok());
  plugins_.ForgetCalls();
  placement::ContainerDemand more = Demand();
  more.requests.Edit()["memory"] = 2 << 20;
  ASSERT_TRUE(Admit(more).ok());
  EXPECT_THAT(plugins_.calls(), ElementsAre("hints memory", "allocate memory"));
  EXPECT_EQ(Record(more)->allocations.at("cpu")->value, "0-1");
}

TEST_F(AdmitterTest, LeavesContainersThatNoPluginServesWithoutARecord) {
  placement::ContainerDemand demand = Demand();
  demand.requests = {{"example.com/gpu", 1}};
  const auto admitted = Admit(demand, {.native_resources = {}});
  ASSERT_TRUE(admitted.ok());
  EXPECT_THAT(admitted->properties, IsEmpty());
  EXPECT_EQ(Record(demand), nullptr);
  EXPECT_EQ(LastTrace()["result"], "skipped");
}

TEST_F(AdmitterTest, AsksForNativeResourcesThatAContainerDoesNotRequest) {
  plugins_.Set("NIC", {});
  placement::ContainerDemand best_effort = Demand();
  best_effort.requests.Edit().clear();
  const auto admitted = Admit(best_effort);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->properties.at("CpusetCpus"), "0-1");
  EXPECT_THAT(*plugins_.allocated("cpu").requests, ElementsAre(Pair("cpu", 0)));
  EXPECT_THAT(*plugins_.allocated("memory").requests, ElementsAre(Pair("memory", 0)));
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate NIC")));
  EXPECT_EQ(LastTrace()["requests"]["cpu"]["source"], "test");
}

TEST_F(AdmitterTest, AsksForNativeResourcesOnceWhenTheyAreMapped) {
  placement::ContainerDemand demand = Demand();
  demand.requests = {{"example.com/batch-cpu", 2000}};
  ASSERT_TRUE(Admit(demand, {.resource_names = {{"example.com/batch-cpu", {"cpu"}}}}).ok());
  EXPECT_THAT(*plugins_.allocated("cpu").requests,
              ElementsAre(Pair("example.com/batch-cpu", 2000)));
}

TEST_F(AdmitterTest, SendsAMappedResourceUnderItsOriginalName) {
  placement::ContainerDemand demand = Demand();
  demand.requests = {{"example.com/batch-cpu", 2000}};
  ASSERT_TRUE(Admit(demand, {.resource_names = {{"example.com/batch-cpu", {"cpu"}}}}).ok());
  EXPECT_THAT(*plugins_.allocated("cpu").requests,
              ElementsAre(Pair("example.com/batch-cpu", 2000)));
  EXPECT_EQ(plugins_.allocated("cpu").resource, "cpu");
  EXPECT_EQ(LastTrace()["requests"]["example.com/batch-cpu"]["as"], "cpu");
}

// The owner was moved from CPU 4, and the runtime does not know yet: CPU 4 is shared only when the
// owner has left it.
TEST_F(AdmitterTest, KeepsANewContainerOffCpusThatTheirOwnerHasNotLeftYet) {
  const auto owner_has = [this](const std::string& cpus) {
    Change change;
    change.put_containers.push_back({test::SamplePod("db"), "main", {}});
    checkpoint::ContainerRecord& record = change.put_containers.back().record;
    record.allocations["cpu"] = test::OwnCpus("2-3");
    record.applied = StringMap{{std::string(kCpusetCpus), cpus}};
    record.applied_to = "db-1";
    ASSERT_TRUE(test::RunOn(state_, [&] { return state_.Commit(change); }).ok());
  };
  const auto cpus_of = [this] {
    const auto admitted = Admit(Demand());
    return admitted.ok() ? admitted->properties.at("CpusetCpus") : MessageOf(admitted.status());
  };
  plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "0-1,4")));
  owner_has("4");
  EXPECT_EQ(cpus_of(), "0-1");
  EXPECT_EQ(Record(Demand())->applied.at("CpusetCpus"), "0-1") << "the reconcile gives it the rest";
  EXPECT_EQ(Record(Demand())->allocations.at("cpu")->value, "0-1,4");
  EXPECT_EQ(cpus_of(), "0-1") << "created again";
  owner_has("2-3");
  EXPECT_EQ(cpus_of(), "0-1,4");
}

TEST_F(AdmitterTest, KeepsCpusBeingLeftForAContainerThatWouldHaveNone) {
  Change change;
  change.put_containers.push_back({test::SamplePod("db"), "main", {}});
  change.put_containers.back().record.allocations["cpu"] = test::OwnCpus("2-3");
  change.put_containers.back().record.applied = StringMap{{std::string(kCpusetCpus), "0-1"}};
  ASSERT_TRUE(test::RunOn(state_, [&] { return state_.Commit(change); }).ok());
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok());
  EXPECT_EQ(admitted->properties.at("CpusetCpus"), "0-1");
}

// An external plugin knows the resource's name and unit.
TEST_F(AdmitterTest, SaysWhatOneOfAMappedResourceIsInThePluginsUnit) {
  placement::ContainerDemand demand = Demand();
  demand.requests = {{"example.com/batch_millicpu", 4000}};
  demand.limits = {{"example.com/batch_millicpu", 5000}};
  const placement::AdmissionOptions options = {
      .resource_names = {{"example.com/batch_millicpu", {"cpu", 0.001}}}};
  ASSERT_TRUE(Admit(demand, options).ok());
  const ContainerRequest asked = plugins_.allocated("cpu");
  EXPECT_THAT(*asked.requests, ElementsAre(Pair("example.com/batch_millicpu", 4000)));
  EXPECT_EQ(asked.quantity(), 4);
  EXPECT_EQ(asked.limit, 5);
  EXPECT_EQ(LastTrace()["requests"]["example.com/batch_millicpu"]["times"], 0.001);
}

TEST_F(AdmitterTest, SendsHugepagesOnlyToTheMemoryPlugin) {
  placement::ContainerDemand demand = Demand();
  demand.requests.Edit()["hugepages-2Mi"] = 1 << 21;
  ASSERT_TRUE(Admit(demand).ok());
  EXPECT_THAT(*plugins_.allocated("memory").requests,
              ElementsAre(Pair("hugepages-2Mi", 1 << 21), Pair("memory", 1 << 20)));
  EXPECT_THAT(*plugins_.allocated("cpu").requests, ElementsAre(Pair("cpu", 2)));
}

TEST_F(AdmitterTest, RejectsAResourceRequestedUnderTwoNames) {
  placement::ContainerDemand demand = Demand();
  demand.requests.Edit()["example.com/batch-cpu"] = 2000;
  EXPECT_THAT(Rejection(demand, {.resource_names = {{"example.com/batch-cpu", {"cpu"}}}}),
              HasSubstr("requests cpu under two names"));
}

TEST_F(AdmitterTest, AddsImplicitResourcesForRolesAndAnnotations) {
  plugins_.Set("NIC", Gives("NIC", {.envs = {{"NIC_ADDR", "10.0.0.1"}}}));
  const placement::AdmissionOptions options{
      .implicit_resources = {{.resource = "NIC", .roles = {"net"}, .annotation = "want/nic"}}};
  ASSERT_TRUE(Admit(Demand("none"), options).ok());
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate NIC")));
  placement::ContainerDemand by_role = Demand("role");
  by_role.pod.role = "net";
  EXPECT_EQ(Admit(by_role, options)->envs.at("NIC_ADDR"), "10.0.0.1");
  EXPECT_EQ(plugins_.allocated("NIC").quantity(), 1);
  placement::ContainerDemand by_annotation = Demand("annotation");
  by_annotation.pod.annotations.Edit()["want/nic"] = "true";
  EXPECT_EQ(Admit(by_annotation, options)->envs.at("NIC_ADDR"), "10.0.0.1");
}

TEST_F(AdmitterTest, FailsBeforeAnyAllocationWhenAPluginIsNotRunning) {
  PluginScript away = Gives("memory", Pin(kCpusetMems, "0"));
  away.live = false;
  away.problem = "its socket is closed; start it again";
  plugins_.Set("memory", away);
  EXPECT_EQ(Rejection(Demand()),
            "cannot admit container main of pod default/web: resource memory: the memory plugin at "
            "/run/memory.sock is not running: its socket is closed; start it again, and kubelet's "
            "next try admits the container; if this pod is the plugin's own, list its namespace "
            "default in plugin-namespaces");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  EXPECT_EQ(Record(Demand()), nullptr);
}

TEST_F(AdmitterTest, ReleasesThePodInAllAskedPluginsWhenOneAllocationFails) {
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "cannot place main: no memory; wait");
  plugins_.Set("memory", full);
  EXPECT_THAT(Rejection(Demand()), HasSubstr("resource memory: cannot place main: no memory"));
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
  EXPECT_THAT(plugins_.calls(), Contains("remove memory uid-web"));
  EXPECT_EQ(Record(Demand()), nullptr);
}

TEST_F(AdmitterTest, ReleasesOnlyTheContainerWhenItsPodHasOthers) {
  ASSERT_TRUE(Admit(Demand("web", "first")).ok());
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  EXPECT_FALSE(Admit(Demand("web", "second")).ok());
  EXPECT_THAT(plugins_.calls(), Contains("release cpu uid-web/second"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("remove"))));
  EXPECT_NE(Record(Demand("web", "first")), nullptr);
}

TEST_F(AdmitterTest, RemembersARollbackThatAPluginMissed) {
  PluginScript broken;
  broken.gives = Errorf(StatusCode::kDeadlineExceeded, "too slow");
  broken.removes = Errorf(StatusCode::kUnavailable, "away");
  plugins_.Set("memory", broken);
  EXPECT_FALSE(Admit(Demand()).ok());
  EXPECT_THAT(state_.Load()->pending_removals(),
              ElementsAre(Pair("uid-web", ElementsAre("memory"))));
}

TEST_F(AdmitterTest, AContainerIsRecreatedWithWhatItHasWhenALargerRequestFails) {
  ASSERT_TRUE(Admit(Demand()).ok());
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  plugins_.ForgetCalls();
  placement::ContainerDemand more = Demand();
  more.requests.Edit()["memory"] = 2 << 20;
  const auto again = Admit(more);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->properties.at("CpusetMems"), "0");
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("release"))));
  EXPECT_EQ(Record(more)->requests.at("memory"), 1 << 20);
}

TEST_F(AdmitterTest, ReleasesEverythingWhenTheDiskRejectsTheCommit) {
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "cannot write: disk full; free space"));
  EXPECT_THAT(Rejection(Demand()), HasSubstr("disk full"));
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
  EXPECT_EQ(Record(Demand()), nullptr);
}

TEST_F(AdmitterTest, AsksNoPluginWhileTheStateCannotBeRead) {
  journal_.Hide(Errorf(StatusCode::kFailedPrecondition, "cannot open: no permission; give it"));
  EXPECT_THAT(Rejection(Demand()), HasSubstr("no permission"));
  EXPECT_THAT(plugins_.calls(), IsEmpty()) << "a plugin would forget what the container has";
  journal_.Hide(OkStatus());
  EXPECT_TRUE(Admit(Demand()).ok());
}

TEST_F(AdmitterTest, FailsWhenItsTimeIsOverBeforeItBegins) {
  Admitter admitter = MakeAdmitter();
  const auto admitted = test::RunOn(state_, [&] {
    return admitter.Admit(Demand(), Admitter::Moment::kAtCreation, clock_.Steady());
  });
  EXPECT_EQ(admitted.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(AdmitterTest, RejectsWhatStrictPoliciesCannotAlignAndNamesThePolicy) {
  PluginScript impossible;
  impossible.hints = HintList::Impossible();
  plugins_.Set("cpu", impossible);
  const std::string message =
      Rejection(Demand(), {.merge = {.policy = TopologyPolicy::kSingleNumaNode}});
  EXPECT_THAT(message, HasSubstr("topology-policy single-numa-node"));
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate cpu")));
}

TEST_F(AdmitterTest, FailsWithThePluginsWordsWhenHintsFail) {
  PluginScript broken;
  broken.hints = Errorf(StatusCode::kUnavailable, "cannot ask cpu: it went away; start it");
  plugins_.Set("cpu", broken);
  EXPECT_THAT(Rejection(Demand(), {.merge = {.policy = TopologyPolicy::kRestricted}}),
              HasSubstr("resource cpu: cannot ask cpu"));
}

TEST_F(AdmitterTest, LeavesATraceOfARejection) {
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  const std::string message = Rejection(Demand());
  const nlohmann::json trace = LastTrace();
  EXPECT_EQ(trace["result"], "rejected");
  EXPECT_EQ(trace["message"], message);
  EXPECT_FALSE(decisions_.log.Read().back().admitted);
  EXPECT_FALSE(decisions_.log.Read().back().commit.has_value());
  EXPECT_EQ(journal_.commits(), 0u) << "a rejection needs no transaction";
}

TEST_F(AdmitterTest, KeepsOneOfEqualRejectionsAMinuteWithTheNumberOfTheOthers) {
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  ASSERT_TRUE(Admit(Demand("early")).ok());
  plugins_.Set("memory", full);
  Admitter admitter = MakeAdmitter();
  const auto reject = [&](const std::string& pod) {
    EXPECT_FALSE(test::RunOn(state_, [&] {
                   return admitter.Admit(Demand(pod), Admitter::Moment::kAtCreation,
                                         DeadlineAfter(std::chrono::minutes(10)));
                 }).ok());
    test::Settle(state_);
  };
  for (int i = 0; i < 1100; ++i) {
    reject("web");
  }
  EXPECT_EQ(decisions_.log.Read().size(), 2U) << "why the early one runs is still known";
  reject("other");
  EXPECT_EQ(decisions_.log.Read().size(), 3U);
  clock_.Advance(std::chrono::minutes(1));
  reject("web");
  EXPECT_EQ(LastTrace()["equal_ones_before"], 1099);
}

TEST_F(AdmitterTest, RejectionsThatDifferInNumbersOnlyAreEqual) {
  Admitter admitter = MakeAdmitter();
  for (int i = 0; i < 100; ++i) {
    PluginScript full;
    full.gives = Errorf(StatusCode::kResourceExhausted, "{} bytes are free", i);
    plugins_.Set("memory", full);
    EXPECT_FALSE(test::RunOn(state_, [&] {
                   return admitter.Admit(Demand("web"), Admitter::Moment::kAtCreation,
                                         DeadlineAfter(std::chrono::minutes(10)));
                 }).ok());
    test::Settle(state_);
  }
  EXPECT_EQ(decisions_.log.Read().size(), 1U);
}

TEST_F(AdmitterTest, ExplainsARejectionByTheMergeWithItsReasons) {
  PluginScript here = Gives("cpu", Pin(kCpusetCpus, "0-1"));
  here.hints = HintList({{.nodes = {0}, .preferred = true}});
  PluginScript there = Gives("memory", Pin(kCpusetMems, "1"));
  there.hints = HintList({{.nodes = {1}, .preferred = true}});
  plugins_.Set("cpu", here);
  plugins_.Set("memory", there);
  Rejection(Demand(), {.merge = {.policy = TopologyPolicy::kSingleNumaNode}});
  const nlohmann::json trace = LastTrace();
  EXPECT_EQ(trace["hints"]["cpu"][0]["nodes"][0], 0);
  EXPECT_EQ(trace["hints"]["memory"][0]["nodes"][0], 1);
  EXPECT_THAT(trace["merge_reasons"][0], HasSubstr("memory: prefers 1, which excludes 0, all"));
  EXPECT_THAT(StepsOf(trace), ElementsAre("hints", "merge"));
}

TEST_F(AdmitterTest, ExplainsARejectionToAllocateWithEverythingThatWentBefore) {
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  Rejection(Demand());
  const nlohmann::json trace = LastTrace();
  EXPECT_THAT(trace["message"], HasSubstr("resource memory: no memory"));
  EXPECT_EQ(trace["hints"].size(), 2u);
  EXPECT_EQ(trace["merged"].size(), 2u);
  EXPECT_FALSE(trace.contains("allocations"));
  EXPECT_THAT(StepsOf(trace), ElementsAre("hints", "merge", "allocate"));
}

TEST_F(AdmitterTest, TracesWhenItWasDecidedAndHowLongEachStepTook) {
  plugins_.on_call = [&](const std::string& call) {
    if (call == "hints cpu") {
      clock_.Advance(std::chrono::milliseconds(3));
    }
  };
  ASSERT_TRUE(Admit(Demand()).ok());
  const nlohmann::json steps = LastTrace()["steps"];
  EXPECT_EQ(steps[0]["microseconds"], 3000);
  EXPECT_EQ(steps[1]["microseconds"], 0);
  EXPECT_EQ(decisions_.log.Read().back().time, clock_.Now());
  EXPECT_EQ(events_.back().took, std::chrono::milliseconds(3));
}

TEST_F(AdmitterTest, BeginsNoStepWhenItsTimeIsOver) {
  plugins_.on_call = [&](const std::string& call) {
    if (call == "hints memory") {
      clock_.Advance(std::chrono::seconds(20));
    }
  };
  EXPECT_THAT(Rejection(Demand()),
              HasSubstr("the admission deadline passed before the step \"merge\""));
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate cpu")));
}

TEST_F(AdmitterTest, ExplainsRequestsHintsMergeAndAllocations) {
  PluginScript cpu = Gives("cpu", Pin(kCpusetCpus, "0-1"));
  cpu.hints = HintList({{.nodes = {0}, .preferred = true}});
  plugins_.Set("cpu", cpu);
  ASSERT_TRUE(Admit(Demand()).ok());
  const nlohmann::json trace = LastTrace();
  EXPECT_EQ(trace["requests"]["cpu"]["source"], "test");
  EXPECT_EQ(trace["hints"]["cpu"][0]["nodes"][0], 0);
  EXPECT_EQ(trace["hints"]["memory"], "no preference");
  EXPECT_EQ(trace["merged"]["memory"]["nodes"][0], 0);
  EXPECT_EQ(trace["allocations"]["cpu"]["value"], "0-1");
}

TEST_F(AdmitterTest, ExplainsTheOtherPluginsHintsAndTheFailedStepsTimeWhenOneGivesNone) {
  PluginScript full;
  full.hints = Errorf(StatusCode::kResourceExhausted, "no CPU is free");
  plugins_.Set("cpu", full);
  Rejection(Demand(), {.merge = {.policy = TopologyPolicy::kRestricted}});
  const nlohmann::json trace = LastTrace();
  EXPECT_EQ(trace["hints"]["cpu"], "none: no CPU is free");
  EXPECT_EQ(trace["hints"]["memory"], "no preference");
  ASSERT_EQ(trace["steps"].size(), 1u);
  EXPECT_EQ(trace["steps"][0]["step"], "hints");
}

TEST_F(AdmitterTest, AFailingHintRejectsNothingUnderBestEffortWhereTheAllocationDecides) {
  PluginScript cpu = Gives("cpu", Pin(kCpusetCpus, "0-1"));
  cpu.hints = Errorf(StatusCode::kInternal, "no hints today");
  plugins_.Set("cpu", cpu);
  ASSERT_TRUE(Admit(Demand()).ok());
  EXPECT_EQ(LastTrace()["hints"]["cpu"], "none: no hints today");
  cpu.gives = Errorf(StatusCode::kResourceExhausted, "no CPU is free");
  plugins_.Set("cpu", cpu);
  EXPECT_THAT(Rejection(Demand("other")), HasSubstr("no CPU is free"));
}

TEST_F(AdmitterTest, OtherResourcesFollowTheCpusThatKubeletPins) {
  placement::ContainerDemand demand = Demand();
  demand.cpus = CpuSet{4, 5};
  ASSERT_TRUE(Admit(demand).ok());
  EXPECT_EQ(LastTrace()["merged"]["memory"]["nodes"], (nlohmann::json{0, 1}))
      << "with a cpu plugin, the runtime's cpuset says nothing";
  plugins_.Drop("cpu");
  demand = Demand("other");
  demand.cpus = CpuSet{4, 5};
  ASSERT_TRUE(Admit(demand).ok());
  EXPECT_EQ(LastTrace()["merged"]["memory"]["nodes"], nlohmann::json{1});
}

TEST_F(AdmitterTest, AnEmptyCpusetIsNoAllocationYet) {
  plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "")));
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->unanswered, ElementsAre("cpu"));
  EXPECT_FALSE(Record(Demand())->allocations.contains("cpu"));
}

TEST_F(AdmitterTest, ARoleThatThePluginDoesNotKnowIsAnEvent) {
  const auto roles = [this] {
    std::vector<std::string> told;
    for (const checkpoint::DecisionTrace& trace : decisions_.log.Read()) {
      if (trace.type == "role") {
        told.push_back(trace.pod_name + ": " + trace.json);
      }
    }
    return told;
  };
  ResourceAllocation cpus = Pin(kCpusetCpus, "0-1");
  cpus.decided_by = "pools.web.roles";
  plugins_.Set("cpu", Gives("cpu", cpus));
  placement::ContainerDemand demand = Demand("web");
  demand.pod.role = "web";
  ASSERT_TRUE(Admit(demand).ok());
  EXPECT_THAT(roles(), IsEmpty());
  cpus.decided_by = "default-pool";
  plugins_.Set("cpu", Gives("cpu", cpus));
  placement::ContainerDemand mistyped = Demand("db");
  mistyped.pod.role = "databse";
  ASSERT_TRUE(Admit(mistyped).ok());
  ASSERT_TRUE(Admit(Demand("none")).ok());
  EXPECT_THAT(roles(), ElementsAre(AllOf(HasSubstr("db: "), HasSubstr("databse"))));
}

TEST_F(AdmitterTest, CountsDecisions) {
  ASSERT_TRUE(Admit(Demand()).ok());
  ASSERT_TRUE(Admit(Demand()).ok());
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[0].result, AdmissionEvent::Result::kAdmitted);
  EXPECT_EQ(events_[1].result, AdmissionEvent::Result::kRepeated);
}

TEST_F(AdmitterTest, NotesAppliedValuesOnlyForContainersThatStartWithThem) {
  ASSERT_TRUE(Admit(Demand("new")).ok());
  EXPECT_THAT(*Record(Demand("new"))->applied, Contains(Pair("CpusetCpus", "0-1")));
  ASSERT_TRUE(Admit(Demand("old"), {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_THAT(Record(Demand("old"))->applied, IsEmpty());
}

TEST_F(AdmitterTest, TakesAccompanyingResourcesUnlessTheirOwnPluginAnswers) {
  PluginScript cpu;
  cpu.gives = AllocationByResource{{"cpu", Pin(kCpusetCpus, "0-1")},
                                   {"memory", Pin(kCpusetMems, "1")},
                                   {"cache", ResourceAllocation{.envs = {{"CACHE", "l3"}}}}};
  plugins_.Set("cpu", cpu);
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok());
  EXPECT_EQ(admitted->properties.at("CpusetMems"), "0");
  EXPECT_EQ(admitted->envs.at("CACHE"), "l3");
}

TEST_F(AdmitterTest, LetsTheFirstPluginByNameWinAConflictAndReportsIt) {
  PluginScript cpu = Gives("cpu", Pin(kCpusetCpus, "0-1"));
  cpu.gives->at("cpu").Edit().envs = {{"PLACE", "by-cpu"}};
  plugins_.Set("cpu", cpu);
  PluginScript memory = Gives("memory", Pin(kCpusetCpus, "2-3"));
  memory.gives->at("memory").Edit().envs = {{"PLACE", "by-memory"}};
  plugins_.Set("memory", memory);
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok());
  EXPECT_EQ(admitted->properties.at("CpusetCpus"), "0-1");
  EXPECT_EQ(admitted->envs.at("PLACE"), "by-cpu");
  EXPECT_EQ(LastTrace()["conflicts"].size(), 2u);
}

struct BadAnswer {
  std::string name;
  ResourceAllocation allocation;
  std::string message;
};

class AdmitterBadAnswerTest : public AdmitterTest, public testing::WithParamInterface<BadAnswer> {};

TEST_P(AdmitterBadAnswerTest, FailsTheAdmissionAndReleasesIt) {
  ResourceAllocation own = Pin(kCpusetCpus, "6-7");
  own.exclusive = true;
  plugins_.Set("cpu", Gives("cpu", own));
  ASSERT_TRUE(Admit(Demand("owner")).ok());
  plugins_.Set("cpu", Gives("cpu", GetParam().allocation));
  const std::string message = Rejection(Demand());
  EXPECT_THAT(message, HasSubstr("resource cpu"));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
  EXPECT_EQ(plugins_.calls().back(), "suspect cpu");
  EXPECT_EQ(plugins_.suspicion("cpu"), message);
  EXPECT_EQ(Record(Demand()), nullptr);
}

const BadAnswer kBadAnswers[] = {
    {"UnknownProperty", Pin("CpuAffinity", "0"), "unknown OCI property \"CpuAffinity\""},
    {"UnparsableCpus", Pin(kCpusetCpus, "0-x"), "0-x"},
    {"CpusOutsideTheMachine", Pin(kCpusetCpus, "6-9"), "8-9 are not online here"},
    {"CpusOfAnother", Pin(kCpusetCpus, "5-6"), "6 belong to container main of pod default/owner"},
    {"NodesOutsideTheMachine", Pin(kCpusetMems, "0,5"), "5 do not exist here"},
    {"NoNumber", Pin("CpuShares", "many"), "not a 64-bit integer"},
};
INSTANTIATE_TEST_SUITE_P(Answers, AdmitterBadAnswerTest, testing::ValuesIn(kBadAnswers),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_F(AdmitterTest, APodWithoutRoomEndsWhereTheConfigurationSaysSo) {
  PluginScript cpu;
  cpu.gives = Errorf(StatusCode::kResourceExhausted, "no CPU is free");
  plugins_.Set("cpu", cpu);
  EXPECT_FALSE(Admit(Demand()).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt);
  placement::AdmissionOptions options;
  options.reject_as = placement::RejectAs::kFail;
  EXPECT_FALSE(Admit(Demand(), options).ok());
  EXPECT_EQ(events_.back().ends_pod_of, Demand().key());
}

TEST_F(AdmitterTest, AStaticPodIsRetriedBecauseNobodyCreatesItElsewhere) {
  PluginScript cpu;
  cpu.gives = Errorf(StatusCode::kResourceExhausted, "no CPU is free");
  plugins_.Set("cpu", cpu);
  placement::AdmissionOptions options;
  options.reject_as = placement::RejectAs::kFail;
  placement::ContainerDemand demand = Demand();
  demand.pod.annotations.Edit()["kubernetes.io/config.source"] = "file";
  EXPECT_FALSE(Admit(demand, options).ok());
  EXPECT_EQ(events_.back().ends_pod_of, std::nullopt);
}

}  // namespace
}  // namespace qrm::manager::admitter_test
