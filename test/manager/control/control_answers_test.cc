// The control API's answers from a state and a status.
#include "manager/control/control_answers.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/qrm/v1/control.pb.h"
#include "test/support/sample_node.h"

namespace qrm::manager::control_answers_test {
namespace {

using checkpoint::NodeState;
using std::chrono::seconds;
using test::Admit;
using test::AdmitRestartableInit;
using test::kGiB;
using test::NodeMemory;
using test::OwnCpus;
using test::SampleMachine;
using test::SamplePod;
using test::SharedCpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

const SteadyTime kNow{seconds(1000)};

std::string NoRuntimeId(const ContainerKey&) {
  return "";
}

TEST(ControlAnswersTest, StatusShowsTimesAsAgesAndNegativeForNever) {
  NodeStatus status;
  status.version = "1.2.3";
  status.started = kNow - seconds(60);
  status.reconcile.period = std::chrono::milliseconds(3000);
  status.reconcile.last = kNow - seconds(2);
  const auto answer = StatusAnswer(status, NodeState(), kNow);
  EXPECT_EQ(answer.version(), "1.2.3");
  EXPECT_TRUE(answer.ready());
  EXPECT_EQ(answer.uptime_seconds(), 60);
  EXPECT_EQ(answer.reconcile().period_seconds(), 3);
  EXPECT_EQ(answer.reconcile().seconds_since_last(), 2);
  EXPECT_LT(answer.runtime().seconds_since_sync(), 0);
}

TEST(ControlAnswersTest, StatusIsNotReadyWithItsReasons) {
  NodeStatus status;
  status.not_ready_reasons = {"the runtime is not running"};
  const auto answer = StatusAnswer(status, NodeState(), kNow);
  EXPECT_FALSE(answer.ready());
  EXPECT_THAT(answer.not_ready_reasons(), ElementsAre("the runtime is not running"));
}

TEST(ControlAnswersTest, StatusCountsPodsContainersAndPendingRemovals) {
  checkpoint::Change pending;
  pending.add_pending_removals = {{"uid-gone", "nic"}};
  const NodeState state = NodeState()
                              .With(Admit(SamplePod("web"), "a", {}))
                              .With(Admit(SamplePod("web"), "b", {}))
                              .With(pending);
  const auto answer = StatusAnswer({}, state, kNow);
  EXPECT_EQ(answer.pods(), 1u);
  EXPECT_EQ(answer.containers(), 2u);
  EXPECT_EQ(answer.pending_removals(), 1u);
}

TEST(ControlAnswersTest, PluginsAreSortedAndNeverSeenOnesHaveNoAge) {
  const auto answer = PluginsAnswer({{.resource = "nic",
                                      .registered_by = RegisteredBy::kRegister,
                                      .live = true,
                                      .registered_at = kNow - seconds(5)},
                                     {.resource = "cpu",
                                      .registered_by = RegisteredBy::kCheckpoint,
                                      .problem = "has not registered yet"}},
                                    {.source = "kubelet-url"}, kNow);
  EXPECT_THAT(answer.notes(), SizeIs(0));
  ASSERT_THAT(answer.plugins(), SizeIs(2));
  EXPECT_EQ(answer.plugins(0).resource_name(), "cpu");
  EXPECT_LT(answer.plugins(0).seconds_since_registration(), 0);
  EXPECT_EQ(answer.plugins(1).registered_by(), "register");
  EXPECT_EQ(answer.plugins(1).seconds_since_registration(), 5);
}

TEST(ControlAnswersTest, PluginsAnswerSaysThatRequestsAreEstimated) {
  EXPECT_THAT(PluginsAnswer({}, {}, kNow).notes(), ElementsAre(HasSubstr("PodsAPI")));
  EXPECT_THAT(PluginsAnswer({}, {.accepted = true}, kNow).notes(), SizeIs(0));
}

TEST(ControlAnswersTest, StatusHasALineForEachSubsystem) {
  NodeStatus status;
  status.requests = {.source = "kubelet-url"};
  status.subsystems = {{.subsystem = Subsystem::kApiServer,
                        .health = Health::kDegraded,
                        .about = "not reachable",
                        .next = "kubectl get --raw /readyz",
                        .since = kNow - seconds(7)}};
  const auto answer = StatusAnswer(status, {}, kNow);
  EXPECT_EQ(answer.requests_from(), "kubelet-url");
  ASSERT_THAT(answer.subsystems(), SizeIs(1));
  EXPECT_EQ(answer.subsystems(0).name(), "API server");
  EXPECT_EQ(answer.subsystems(0).state(), "degraded");
  EXPECT_EQ(answer.subsystems(0).seconds_in_state(), 7);
  EXPECT_EQ(answer.subsystems(0).about(), "not reachable");
  EXPECT_EQ(answer.subsystems(0).next(), "kubectl get --raw /readyz");
}

TEST(ControlAnswersTest, PodsAreSortedByNamespaceAndName) {
  const NodeState state = NodeState()
                              .With(Admit(SamplePod("b", "x"), "main", {}))
                              .With(Admit(SamplePod("a", "y"), "main", {}))
                              .With(Admit(SamplePod("c", "x"), "main", {}));
  const auto answer = PodsAnswer(state, "", NoRuntimeId);
  ASSERT_TRUE(answer.ok());
  ASSERT_THAT(answer->pods(), SizeIs(3));
  EXPECT_EQ(answer->pods(0).name(), "b");
  EXPECT_EQ(answer->pods(1).name(), "c");
  EXPECT_EQ(answer->pods(2).name(), "a");
}

TEST(ControlAnswersTest, PodsAreFoundByNameFullNameAndUid) {
  const NodeState state = NodeState()
                              .With(Admit(SamplePod("web", "shop"), "main", {}))
                              .With(Admit(SamplePod("db", "shop"), "main", {}));
  for (const char* selector : {"web", "shop/web", "uid-web"}) {
    const auto answer = PodsAnswer(state, selector, NoRuntimeId);
    ASSERT_TRUE(answer.ok()) << selector;
    ASSERT_THAT(answer->pods(), SizeIs(1)) << selector;
    EXPECT_EQ(answer->pods(0).name(), "web");
  }
}

TEST(ControlAnswersTest, PodsShowMissingResourcesAndRequestsFromTheConfiguration) {
  const NodeState state = NodeState().With(Admit(SamplePod("web"), "main", {}));
  const auto answer = PodsAnswer(state, "", NoRuntimeId, [](const auto&, const std::string&) {
    return ContainerRemarks{
        .implicit_requests = {"nic"}, .runs_without = {"lane"}, .pending = "no room"};
  });
  const v1::Container& listed = answer->pods(0).containers(0);
  EXPECT_THAT(listed.runs_without(), ElementsAre("lane"));
  EXPECT_EQ(listed.pending(), "no room");
  EXPECT_EQ(listed.request_sources().at("nic"), "configuration");
}

/// The states of the containers of `answer`, by pod, as "state: why".
std::map<std::string, std::string> StatesIn(const v1::ListPodsResponse& answer) {
  std::map<std::string, std::string> states;
  for (const v1::Pod& pod : answer.pods()) {
    states[pod.name()] = pod.containers(0).state() + ": " + pod.containers(0).why();
  }
  return states;
}

TEST(ControlAnswersTest, EveryContainerHasAStateAndTheReason) {
  checkpoint::Change agent = Admit(SamplePod("agent"), "main", {});
  agent.put_containers[0].record.skipped = "an annotation is set";
  const NodeState state = NodeState()
                              .With(Admit(SamplePod("web"), "main", {}))
                              .With(Admit(SamplePod("lane"), "main", {}))
                              .With(Admit(SamplePod("late"), "main", {}))
                              .With(Admit(SamplePod("ended"), "main", {}))
                              .With(agent);
  const std::vector<UnplacedContainer> unplaced = {{.key = {"uid-job", "main"},
                                                    .pod_name = "job",
                                                    .state = UnplacedState::kRejected,
                                                    .why = "no CPU"},
                                                   {.key = {"uid-log", "main"},
                                                    .pod_name = "log",
                                                    .state = UnplacedState::kSkipped,
                                                    .why = "a rule"}};
  const auto answer = PodsAnswer(
      state, "", [](const ContainerKey& key) { return key.pod_uid == "uid-ended" ? "" : "id"; },
      [](const auto& pod, const std::string&) {
        ContainerRemarks remarks;
        if (pod.meta.name == "lane") {
          remarks.runs_without = {"nic"};
        } else if (pod.meta.name == "late") {
          remarks.rejected = "no NIC";
        }
        return remarks;
      },
      {.unplaced = unplaced, .decisions = {}});
  EXPECT_EQ(
      StatesIn(*answer),
      (std::map<std::string, std::string>{
          {"web", "admitted: "},
          {"lane", "incomplete: it was created without nic; delete the pod to have it recreated"},
          {"late", "incomplete: no NIC"},
          {"ended", "not running: "},
          {"agent", "skipped: an annotation is set"},
          {"job", "unpinned: no CPU"},
          {"log", "skipped: a rule"}}));
  EXPECT_EQ(PodsAnswer(state, "job", NoRuntimeId, {}, {unplaced, {}})->pods_size(), 1);
}

TEST(ControlAnswersTest, DecisionsTellSinceWhenAContainerIsSoAndWhatPlacedIt) {
  const NodeState state = NodeState().With(Admit(SamplePod("web"), "main", {}));
  const Decisions decisions = {
      {.key = {"uid-web", "main"},
       .time = std::chrono::system_clock::from_time_t(7),
       .admitted = true,
       .json = R"({"allocations": {"cpu": {"decided_by": "static"}, "memory": {}}})"},
      {.key = {"uid-job", "main"},
       .time = std::chrono::system_clock::from_time_t(9),
       .json = R"({"result": "rejected", "message": "no CPU", "first_unix_millis": 8000})"}};
  const auto answer = PodsAnswer(
      state, "", NoRuntimeId, {},
      {.unplaced = {{.key = {"uid-job", "main"}, .pod_name = "job"}}, .decisions = decisions});
  const v1::Container& job = answer->pods(0).containers(0);
  const v1::Container& web = answer->pods(1).containers(0);
  EXPECT_EQ(job.since_unix_millis(), 8000);
  EXPECT_EQ(web.since_unix_millis(), 7000);
  EXPECT_EQ(web.why(), "cpu by static");
}

TEST(ControlAnswersTest, PoolsThatWereResizedByHandShowTheConfiguredSize) {
  const std::vector<sdk::Pool> pools = {{.name = "a", .cpus = {0, 1}}, {.name = "b", .cpus = {2}}};
  const auto answer = PoolsAnswer<v1::GetPoolsResponse>(
      pools, "cpu",
      {{.resource = "cpu", .pool = "a", .configured = CpuSet({0, 1, 3}), .cpus = CpuSet({0, 1})},
       {.resource = "cpu", .pool = "b", .configured = CpuSet({2}), .cpus = CpuSet({2})}});
  EXPECT_EQ(answer->pools(0).configured_cpus(), "0-1,3");
  EXPECT_EQ(answer->pools(1).configured_cpus(), "");
}

TEST(ControlAnswersTest, PoolsDistinguishTheirCpusFromBorrowedOnes) {
  const std::vector<sdk::Pool> pools = {{.name = "a", .cpus = {0, 1}, .borrowed = {2, 3}}};
  const auto answer = PoolsAnswer<v1::GetPoolsResponse>(pools, "cpu", {});
  EXPECT_EQ(answer->pools(0).cpus(), "0-1");
  EXPECT_EQ(answer->pools(0).borrowed_cpus(), "2-3");
}

TEST(ControlAnswersTest, EventsAreDecisionsSinceATimeInALineEach) {
  const std::chrono::system_clock::time_point at(std::chrono::hours(1));
  const auto trace = [&](int minute, bool admitted, const std::string& json) {
    return checkpoint::DecisionTrace{.key = {"uid-web", "main"},
                                     .pod_namespace = "shop",
                                     .pod_name = "web",
                                     .time = at + std::chrono::minutes(minute),
                                     .admitted = admitted,
                                     .json = json};
  };
  const auto answer = EventsAnswer(
      {trace(0, true, "{}"), trace(1, false, R"({"result":"rejected","message":"no room"})"),
       trace(2, true,
             R"({"result":"admitted","allocations":{"cpu":{"property":"CpusetCpus","value":"0-1"},)"
             R"("nic":{}}})")},
      at + std::chrono::minutes(1));
  ASSERT_THAT(answer.events(), SizeIs(2));
  EXPECT_EQ(answer.events(0).result(), "rejected");
  EXPECT_EQ(answer.events(0).message(), "no room");
  EXPECT_EQ(answer.events(1).message(), "cpu: CpusetCpus=0-1, nic");
}

TEST(ControlAnswersTest, AnUnknownPodIsNotFoundByName) {
  const auto answer = PodsAnswer(NodeState(), "web", NoRuntimeId);
  EXPECT_EQ(answer.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(answer.status()), HasSubstr("cannot show pod web"));
}

TEST(ControlAnswersTest, ContainersShowTheirAllocationsInStartOrder) {
  const auto pod = SamplePod("web");
  const NodeState state =
      NodeState()
          .With(Admit(pod, "main", {{"cpu", OwnCpus("1-2")}, {"memory", NodeMemory({{0, kGiB}})}}))
          .With(AdmitRestartableInit(pod, "proxy", 1))
          .With(Admit(pod, "helper", {}, ContainerType::kSidecar, 1))
          .With(Admit(pod, "setup", {}, ContainerType::kInit, 0))
          .With(Admit(pod, "debug", {}, ContainerType::kEphemeral, 0));
  const auto answer =
      PodsAnswer(state, "", [](const ContainerKey& key) { return "id-of-" + key.container; });
  const v1::Pod& listed = answer->pods(0);
  ASSERT_THAT(listed.containers(), SizeIs(5));
  EXPECT_EQ(listed.containers(0).name(), "setup");
  EXPECT_EQ(listed.containers(1).name(), "proxy");
  const v1::Container& main = listed.containers(2);
  EXPECT_EQ(listed.containers(3).name(), "helper");
  EXPECT_EQ(listed.containers(4).name(), "debug");
  EXPECT_EQ(main.type(), "MAIN");
  EXPECT_EQ(main.runtime_id(), "id-of-main");
  ASSERT_THAT(main.allocations(), SizeIs(2));
  EXPECT_EQ(main.allocations(0).value(), "1-2");
  EXPECT_TRUE(main.allocations(0).exclusive());
  EXPECT_EQ(main.allocations(1).amount_by_node().at(0), kGiB);
}

std::optional<std::chrono::system_clock::time_point> NoUpdate(const ContainerKey& /*key*/) {
  return std::nullopt;
}

checkpoint::DecisionTrace Decided(const std::string& uid, int second) {
  return {.key = {uid, "main"},
          .pod_namespace = "shop",
          .pod_name = "web",
          .time = std::chrono::system_clock::from_time_t(second),
          .json = "{}"};
}

TEST(ControlAnswersTest, ExplainShowsWhatTheContainerHasNowWithTheLatestDecision) {
  checkpoint::Change change = Admit(SamplePod("web", "shop"), "main", {{"cpu", OwnCpus("1")}});
  change.put_containers[0].record.applied = {{"CpusetCpus", "1"}};
  Decisions decisions = {Decided("uid-web", 7), Decided("uid-web", 8)};
  decisions[0].commit = std::chrono::microseconds(90);
  const auto answer =
      ExplainAnswer(NodeState().With(change), decisions, "web", [](const ContainerKey& key) {
        EXPECT_EQ(key, (ContainerKey{"uid-web", "main"}));
        return std::optional(std::chrono::system_clock::from_time_t(9));
      });
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->decisions(0).applied().empty());
  EXPECT_EQ(answer->decisions(0).updated_unix_millis(), 0);
  EXPECT_EQ(answer->decisions(0).commit_micros(), 90);
  EXPECT_EQ(answer->decisions(1).commit_micros(), 0);
  EXPECT_EQ(answer->decisions(1).applied().at("CpusetCpus"), "1");
  EXPECT_EQ(answer->decisions(1).updated_unix_millis(), 9000);
}

TEST(ControlAnswersTest, ExplainShowsDecisionsAboutOnePodOldestFirst) {
  Decisions decisions = {Decided("uid-web", 7), Decided("uid-db", 7), Decided("uid-web", 7)};
  decisions[1].pod_name = "db";
  decisions[2].admitted = true;
  const auto answer = ExplainAnswer(NodeState(), decisions, "shop/web", NoUpdate);
  ASSERT_TRUE(answer.ok());
  ASSERT_THAT(answer->decisions(), SizeIs(2));
  EXPECT_FALSE(answer->decisions(0).admitted());
  EXPECT_TRUE(answer->decisions(1).admitted());
  EXPECT_EQ(answer->decisions(0).unix_millis(), 7000);
}

TEST(ControlAnswersTest, ExplainShowsThePodOfANameFirstThatCameLast) {
  const auto answer = ExplainAnswer(
      NodeState(),
      {Decided("uid-1", 1), Decided("uid-2", 2), Decided("uid-2", 3), Decided("uid-1", 4)}, "web",
      NoUpdate);
  ASSERT_TRUE(answer.ok());
  std::vector<std::pair<std::string, int64_t>> told;
  for (const v1::Decision& decision : answer->decisions()) {
    told.emplace_back(decision.pod_uid(), decision.unix_millis() / 1000);
  }
  EXPECT_THAT(told,
              ElementsAre(Pair("uid-2", 2), Pair("uid-2", 3), Pair("uid-1", 1), Pair("uid-1", 4)));
}

TEST(ControlAnswersTest, ExplainShowsThePodThatIsThereBeforeLaterOnesOfItsName) {
  const NodeState state =
      NodeState().With(Admit(SamplePod("web", "shop"), "main", {{"cpu", OwnCpus("1")}}));
  const auto answer =
      ExplainAnswer(state, {Decided("uid-web", 1), Decided("uid-next", 2)}, "web", NoUpdate);
  ASSERT_TRUE(answer.ok());
  ASSERT_THAT(answer->decisions(), SizeIs(2));
  EXPECT_EQ(answer->decisions(0).pod_uid(), "uid-web");
}

TEST(ControlAnswersTest, ExplainOfAPodWithoutDecisionsIsNotFound) {
  const auto answer = ExplainAnswer(NodeState(), {}, "web", NoUpdate);
  EXPECT_EQ(answer.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(answer.status()), HasSubstr("no decision about it is remembered"));
}

checkpoint::DecisionTrace Rejected(const std::string& pod, int second, const std::string& why,
                                   int equal_ones_before = 0) {
  const nlohmann::json json = {
      {"result", "rejected"}, {"message", why}, {"equal_ones_before", equal_ones_before}};
  return {.key = {"uid-" + pod, "main"},
          .pod_namespace = "shop",
          .pod_name = pod,
          .time = std::chrono::system_clock::from_time_t(second),
          .json = json.dump()};
}

TEST(ControlAnswersTest, ExplainShowsOneOfEqualRejections) {
  Decisions decisions;
  for (int second = 1; second <= 1010; ++second) {
    decisions.push_back(
        Rejected("web", second, fmt::format("{} CPUs are free, too few", second % 5)));
  }
  const auto answer = ExplainAnswer(NodeState(), decisions, "web", NoUpdate);
  ASSERT_TRUE(answer.ok());
  ASSERT_THAT(answer->decisions(), SizeIs(1));
  EXPECT_EQ(answer->decisions(0).unix_millis(), 1010000);
  EXPECT_THAT(answer->decisions(0).json(), HasSubstr(R"("equal_ones_before":1009)"));
  EXPECT_THAT(answer->decisions(0).json(), HasSubstr(R"("first_unix_millis":1000)"));
}

TEST(ControlAnswersTest, RejectionsThatDifferInNumbersOnlyAreOne) {
  const v1::ListRefusalsResponse answer = RefusalsAnswer(
      {Rejected("web", 1, "2 CPUs are free"), Rejected("web", 2, "3 CPUs are free")}, {});
  ASSERT_THAT(answer.refusals(), SizeIs(1));
  EXPECT_EQ(answer.refusals(0).message(), "3 CPUs are free");
  EXPECT_EQ(answer.refusals(0).times(), 2u);
}

TEST(ControlAnswersTest, RejectionsFoldEqualOnesAndReportTheLatestFirst) {
  Decisions decisions = {Rejected("web", 1, "no CPU"), Rejected("db", 2, "no memory"),
                         Rejected("web", 61, "no CPU", 40), Rejected("web", 62, "no NIC")};
  decisions.push_back(Rejected("left-alone", 63, ""));
  decisions.back().json = R"({"result": "skipped"})";
  decisions.push_back(Rejected("cut", 64, ""));
  decisions.back().json = "{";
  const auto told = [](const v1::ListRefusalsResponse& answer) {
    std::vector<std::string> lines;
    for (const v1::Refusal& refusal : answer.refusals()) {
      lines.push_back(fmt::format("{} {} {} {}-{}", refusal.pod_name(), refusal.message(),
                                  refusal.times(), refusal.first_unix_millis(),
                                  refusal.last_unix_millis()));
    }
    return lines;
  };
  EXPECT_THAT(told(RefusalsAnswer(decisions, {})),
              ElementsAre("web no NIC 1 62000-62000", "web no CPU 42 1000-61000",
                          "db no memory 1 2000-2000"));
  EXPECT_THAT(told(RefusalsAnswer(decisions, std::chrono::system_clock::from_time_t(61))),
              SizeIs(2));
}

TEST(NodeUseTest, CpusOfANodeAreExclusiveSharedOrFree) {
  const NodeState state = NodeState()
                              .With(Admit(SamplePod("a"), "main", {{"cpu", OwnCpus("1")}}))
                              .With(Admit(SamplePod("b"), "main", {{"cpu", SharedCpus("2-5", 1)}}));
  const auto uses = NodeUses(state, SampleMachine());
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_EQ(uses[0].exclusive_cpus(), "1");
  EXPECT_EQ(uses[0].shared_cpus(), "2-3");
  EXPECT_EQ(uses[0].free_cpus(), "0");
  EXPECT_EQ(uses[1].exclusive_cpus(), "");
  EXPECT_EQ(uses[1].shared_cpus(), "4-5");
  EXPECT_EQ(uses[1].free_cpus(), "6-7");
}

TEST(NodeUseTest, ContainersAreListedOnTheNodesTheyUse) {
  const NodeState state = NodeState().With(
      Admit(SamplePod("a", "x"), "main",
            {{"cpu", OwnCpus("0-1")}, {"memory", NodeMemory({{0, kGiB}, {1, 2 * kGiB}})}}));
  const auto uses = NodeUses(state, SampleMachine());
  ASSERT_THAT(uses[0].containers(), SizeIs(1));
  EXPECT_EQ(uses[0].containers(0).container(), "x/a/main");
  EXPECT_EQ(uses[0].containers(0).cpus(), "0-1");
  EXPECT_TRUE(uses[0].containers(0).exclusive());
  EXPECT_EQ(uses[0].memory_bytes(), kGiB);
  ASSERT_THAT(uses[1].containers(), SizeIs(1));
  EXPECT_EQ(uses[1].containers(0).cpus(), "");
  EXPECT_EQ(uses[1].containers(0).memory_bytes(), 2 * kGiB);
}

TEST(NodeUseTest, ContainersAreSortedByName) {
  checkpoint::PodMeta last = SamplePod("z");
  last.uid = "0";  // pods are kept by UID
  const NodeState state = NodeState()
                              .With(Admit(last, "main", {{"cpu", OwnCpus("1")}}))
                              .With(Admit(SamplePod("a"), "main", {{"cpu", OwnCpus("2")}}));
  const auto uses = NodeUses(state, SampleMachine());
  EXPECT_EQ(uses[0].containers(0).container(), "default/a/main");
}

TEST(NodeUseTest, AnIdleNodeIsFree) {
  const auto uses = NodeUses(NodeState(), SampleMachine(1));
  EXPECT_EQ(uses[0].free_cpus(), "0-3");
  EXPECT_THAT(uses[0].containers(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::control_answers_test
