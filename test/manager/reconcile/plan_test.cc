#include "manager/reconcile/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/reconcile/update_runner.h"
#include "test/support/fake_runtime.h"
#include "test/support/sample_node.h"

namespace qrm::manager::plan_test {
namespace {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

ContainerKey Key(const std::string& pod) {
  return {"uid-" + pod, "main"};
}

ResourceAllocation Pool(const std::string& cpus) {
  ResourceAllocation allocation = test::OwnCpus(cpus);
  allocation.exclusive = false;
  return allocation;
}
ResourceAllocation Own(const std::string& cpus) {
  ResourceAllocation allocation = test::OwnCpus(cpus);
  allocation.exclusive = true;
  return allocation;
}

// Containers "main" of some pods, by pod, each with a cpu allocation that was applied.
NodeState StateOf(const std::map<std::string, ResourceAllocation>& cpu_by_pod) {
  Change change;
  for (const auto& [pod, allocation] : cpu_by_pod) {
    change.put_containers.push_back({test::SamplePod(pod),
                                     "main",
                                     {.allocations = {{"cpu", allocation}},
                                      .applied = {{"CpusetCpus", allocation.value}},
                                      .applied_to = "id-" + pod}});
  }
  return NodeState().With(change);
}

AllocationsByPlugin CpuHolds(const std::map<std::string, ResourceAllocation>& cpu_by_pod) {
  AllocationByContainer holds;
  for (const auto& [pod, allocation] : cpu_by_pod) {
    holds[Key(pod)] = {{"cpu", allocation}};
  }
  return {{"cpu", calls::ToHeld(holds)}};
}

ReconcilePlan Plan(const NodeState& state, const AllocationsByPlugin& answers) {
  return PlanReconcile(state, state, answers, test::SampleMachine());
}

TEST(PlanReconcileTest, ReleasesWhatOnlyANewContainerCouldTake) {
  const NodeState state = StateOf({{"web", Own("0-1")}});
  const AllocationsByPlugin answers = {
      {"lane",
       calls::ToHeld({{Key("web"), {{"lane", ResourceAllocation{.envs = {{"LANE", "0"}}}}}}})}};
  const ReconcilePlan plan = Plan(state, answers);
  EXPECT_TRUE(plan.change.Empty()) << "the container runs without it";
  EXPECT_THAT(plan.orphans, ElementsAre(Pair("lane", ElementsAre(Key("web")))));
}

TEST(PlanReconcileTest, ChangesNothingOnAnIdleNode) {
  const ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}}), CpuHolds({{"a", Pool("0-3")}}));
  EXPECT_TRUE(plan.change.Empty());
  EXPECT_THAT(plan.problems, IsEmpty());
  EXPECT_THAT(plan.orphans, IsEmpty());
}

TEST(PlanReconcileTest, TakesWhatAPluginChanged) {
  const ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}, {"b", Pool("4-7")}}),
                                  CpuHolds({{"a", Pool("0-1")}, {"b", Pool("4-7")}}));
  ASSERT_EQ(plan.change.put_containers.size(), 1u);
  EXPECT_EQ(plan.change.put_containers[0].pod.name, "a");
  EXPECT_EQ(plan.change.put_containers[0].record.allocations.at("cpu")->value, "0-1");
  EXPECT_EQ(plan.change.put_containers[0].record.applied.at("CpusetCpus"), "0-3");
}

TEST(PlanReconcileTest, KeepsWhatThePluginDoesNotRepeat) {
  ResourceAllocation full = Pool("0-3");
  full.hints = {{.nodes = {0}, .preferred = true}};
  full.envs = {{"E", "1"}};
  full.annotations = {{"A", "1"}};
  full.amount_by_node = {{0, 4}};
  full.mounts = {{"/m", "/m", true}};
  full.devices = {{"/d", "/d", "r"}};
  full.pool = "batch";
  full.decided_by = "rules[0]";
  full.class_defaults = {{"blockio", "slow"}};
  ResourceAllocation bare = Pool("0-1");
  bare.hints = std::nullopt;
  bare.amount_by_node.clear();
  ResourceAllocation want = full;
  want.value = bare.value;
  want.quantity = bare.quantity;
  want.amount_by_node.clear();  // of other CPUs
  EXPECT_EQ(MergeAllocation(full, bare), want);
  bare.value = want.value = full.value;
  want.amount_by_node = full.amount_by_node;
  EXPECT_EQ(MergeAllocation(full, bare), want);
}

TEST(PlanReconcileTest, KeepsWhatWasInferredExclusive) {
  ResourceAllocation own = Pool("0-1");
  own.exclusive = own.is_inferred = true;
  const ResourceAllocation merged = MergeAllocation(own, Pool("2-3"));
  EXPECT_TRUE(merged.exclusive && merged.is_inferred);
  EXPECT_EQ(merged.value, "2-3");
}

TEST(PlanReconcileTest, IgnoresAnEmptyCpuset) {
  const ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}}), CpuHolds({{"a", Pool("")}}));
  EXPECT_TRUE(plan.change.Empty());
  EXPECT_THAT(plan.problems, IsEmpty());
}

TEST(PlanReconcileTest, TakesHintsThatThePluginRepeats) {
  ResourceAllocation before = Pool("0-3");
  before.hints = {{.nodes = {0}, .preferred = true}};
  ResourceAllocation fresh = Pool("4-7");
  fresh.hints = std::vector<TopologyHint>{};
  EXPECT_THAT(MergeAllocation(before, fresh).hints, Optional(IsEmpty()));
}

TEST(PlanReconcileTest, KeepsARecordThatThePluginForgotAndFindsIt) {
  const ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}}), CpuHolds({}));
  EXPECT_TRUE(plan.change.Empty());
  EXPECT_THAT(plan.missing, ElementsAre(Pair("cpu", ElementsAre(Key("a")))));
}

TEST(PlanReconcileTest, DoesNotMissWhatAnotherPluginGaveUnderThatName) {
  Change change = StateOf({{"a", Pool("0-3")}}).AsChange();
  change.put_containers[0].record.origins.Edit()["cpu"] = {.plugin = "other"};
  EXPECT_THAT(Plan(NodeState().With(change), CpuHolds({})).missing, IsEmpty());
}

TEST(PlanReconcileTest, NotesWhatTheContainerWasAdmittedWith) {
  ResourceAllocation more = Pool("0-5");
  more.quantity = 6;
  ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}}), CpuHolds({{"a", more}}));
  ASSERT_FALSE(plan.change.put_containers.empty());
  const auto& origin = plan.change.put_containers[0].record.origins.at("cpu");
  EXPECT_EQ(origin.plugin, "cpu");
  EXPECT_THAT(origin.admitted,
              Optional(Field(&checkpoint::Amounts::quantity, Pool("0-3").quantity)));
}

TEST(PlanReconcileTest, RejectsMoreBoundMemoryThanANodeHas) {
  const Machine machine = test::SampleMachine();
  ResourceAllocation all{.oci_property = std::string(kCpusetMems), .value = "0"};
  all.amount_by_node = {{0, machine.FindNode(0)->memory_bytes}};
  ResourceAllocation more = all;
  more.amount_by_node[0] = 1;
  const ReconcilePlan plan =
      Plan(StateOf({{"a", Pool("0-3")}, {"b", all}}), CpuHolds({{"a", more}, {"b", all}}));
  EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("to NUMA node 0, which has")));
}

TEST(PlanReconcileTest, FindsWhatAPluginHoldsForUnknownContainers) {
  const ReconcilePlan plan = Plan(StateOf({}), CpuHolds({{"ghost", Pool("0-3")}}));
  EXPECT_THAT(plan.orphans, ElementsAre(Pair("cpu", ElementsAre(Key("ghost")))));
}

TEST(PlanReconcileTest, SkipsContainersThatWereAdmittedWhileThePluginsAnswered) {
  const NodeState asked = StateOf({});
  const NodeState now = StateOf({{"new", Own("0-1")}});
  const ReconcilePlan plan =
      PlanReconcile(asked, now, CpuHolds({{"new", Pool("0-3")}}), test::SampleMachine());
  EXPECT_TRUE(plan.stale);
  EXPECT_TRUE(plan.change.Empty());
  EXPECT_THAT(plan.orphans, IsEmpty());
}

TEST(PlanReconcileTest, DoesNotReportAContainerThatTheOldAnswerCannotHave) {
  const ReconcilePlan plan = PlanReconcile(StateOf({}), StateOf({{"new", Own("0-1")}}),
                                           CpuHolds({}), test::SampleMachine());
  EXPECT_THAT(plan.problems, IsEmpty());
}

TEST(PlanReconcileTest, ReportsAPluginThatFailsAndTakesTheOthers) {
  AllocationsByPlugin answers = CpuHolds({{"a", Pool("0-1")}});
  answers.emplace("memory", Errorf(StatusCode::kUnavailable, "memory is not running"));
  const ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}}), answers);
  EXPECT_THAT(plan.problems, ElementsAre("memory is not running"));
  EXPECT_EQ(plan.change.put_containers.size(), 1u);
}

TEST(PlanReconcileTest, ComparesOnlyThePodsOfItsScope) {
  const NodeState state =
      StateOf({{"a", Pool("0-3")}, {"b", Pool("0-3")}, {"c", Pool("0-3")}, {"d", Pool("0-3")}});
  const AllocationsByPlugin answers = CpuHolds(
      {{"a", Pool("0-1")}, {"b", Pool("0-1")}, {"ghost", Pool("0-1")}, {"spook", Pool("0-1")}});
  const PodsByPlugin scope = {{"cpu", {"uid-b", "uid-d", "uid-ghost"}}};
  const ReconcilePlan plan =
      PlanReconcile(state, state, answers, test::SampleMachine(), {{}, scope});
  ASSERT_EQ(plan.change.put_containers.size(), 1u);
  EXPECT_EQ(plan.change.put_containers[0].pod.uid, "uid-b");
  EXPECT_THAT(plan.orphans, ElementsAre(Pair("cpu", ElementsAre(Key("ghost")))));
  EXPECT_THAT(plan.missing, ElementsAre(Pair("cpu", ElementsAre(Key("d")))));
}

TEST(PlanReconcileTest, RejectsWhatAnAdmissionWouldReject) {
  for (const char* bad : {"0-99", "x"}) {
    const ReconcilePlan plan = Plan(StateOf({{"a", Pool("0-3")}}), CpuHolds({{"a", Pool(bad)}}));
    EXPECT_TRUE(plan.change.Empty()) << bad;
    EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("cannot change container main of pod")));
    EXPECT_THAT(plan.refused, ElementsAre("uid-a"));
  }
}

TEST(PlanReconcileTest, RejectsCpusThatBelongToAnotherContainer) {
  const NodeState state = StateOf({{"owner", Own("4-5")}, {"shared", Pool("0-3")}});
  const ReconcilePlan plan =
      Plan(state, CpuHolds({{"owner", Own("4-5")}, {"shared", Pool("0-4")}}));
  EXPECT_TRUE(plan.change.Empty());
  EXPECT_THAT(plan.problems, ElementsAre(HasSubstr("4 belong to container main of pod")));
}

TEST(PlanReconcileTest, LetsCpusMoveFromOneContainerToAnotherInOneStep) {
  const NodeState state = StateOf({{"owner", Own("4-5")}, {"shared", Pool("0-3")}});
  const ReconcilePlan plan =
      Plan(state, CpuHolds({{"owner", Own("2-3")}, {"shared", Pool("0-1,4-5")}}));
  EXPECT_EQ(plan.change.put_containers.size(), 2u);
  EXPECT_THAT(plan.problems, IsEmpty());
}

std::map<ContainerKey, LiveContainer> Live(const std::vector<std::string>& pods) {
  std::map<ContainerKey, LiveContainer> live;
  for (const std::string& pod : pods) {
    live[Key(pod)] = {.id = "id-" + pod, .pod_id = "sandbox-" + pod, .started = true};
  }
  return live;
}

// The state after the cpu plugin changed some allocations.
NodeState Changed(const NodeState& state, const std::map<std::string, ResourceAllocation>& cpu) {
  Change change;
  for (const auto& [pod, allocation] : cpu) {
    ContainerRecord record = *state.Find(Key(pod));
    record.allocations["cpu"] = allocation;
    change.put_containers.push_back({test::SamplePod(pod), "main", std::move(record)});
  }
  return state.With(change);
}

TEST(PlanUpdatesTest, UpdatesOnlyContainersWhoseValuesDiffer) {
  const NodeState state =
      Changed(StateOf({{"a", Pool("0-3")}, {"b", Pool("4-7")}}), {{"a", Pool("0-1")}});
  const auto updates = PlanUpdates(state, Live({"a", "b"}));
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(updates[0].container_id, "id-a");
  EXPECT_THAT(updates[0].properties, ElementsAre(Pair("CpusetCpus", "0-1")));
}

TEST(PlanUpdatesTest, LeavesOutContainersThatDoNotRunAndThoseItDoesNotKnow) {
  const NodeState state = Changed(StateOf({{"a", Pool("0-3")}}), {{"a", Pool("0-1")}});
  EXPECT_THAT(PlanUpdates(state, {}), IsEmpty());
  EXPECT_THAT(PlanUpdates(state, Live({"x"})), IsEmpty());
  auto created = Live({"a"});
  created.begin()->second.started = false;
  EXPECT_THAT(PlanUpdates(state, created), IsEmpty());
}

TEST(PlanUpdatesTest, AppliesEveryValueToAContainerThatReplacedAnother) {
  ResourceAllocation quota = {.oci_property = "CpuQuota", .value = "50000"};
  Change change;
  change.put_containers.push_back({test::SamplePod("a"),
                                   "main",
                                   {.allocations = {{"cpu", Pool("0-3")}, {"quota", quota}},
                                    .applied = {{"CpusetCpus", "0-3"}, {"CpuQuota", "50000"}},
                                    .applied_to = "the former one"}});
  const auto updates = PlanUpdates(NodeState().With(change), Live({"a"}));
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_THAT(updates[0].properties,
              ElementsAre(Pair("CpuQuota", "50000"), Pair("CpusetCpus", "0-3")));
}

TEST(PlanUpdatesTest, PutsContainersThatLoseCpusBeforeThoseThatGain) {
  const NodeState state = Changed(StateOf({{"a", Pool("0-1")}, {"b", Pool("2-7")}}),
                                  {{"a", Pool("0-4")}, {"b", Pool("5-7")}});
  const auto updates = PlanUpdates(state, Live({"a", "b"}));
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].container_id, "id-b");
  EXPECT_FALSE(updates[0].grows);
  EXPECT_TRUE(updates[1].grows);
}

TEST(PlanUpdatesTest, GivesADeferredContainerItsCpusAgainAfterOthersHaveLeftThem) {
  const NodeState state =
      Changed(StateOf({{"a", Pool("0-3")}, {"b", Pool("0-3")}}), {{"b", Pool("0-1")}});
  const auto updates = PlanUpdates(state, Live({"a", "b"}), {}, {Key("a"), Key("gone")});
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[1].container_id, "id-a");
  EXPECT_THAT(updates[1].properties, ElementsAre(Pair("CpusetCpus", "0-3")));
  EXPECT_TRUE(updates[1].grows);
}

TEST(PlanUpdatesTest, GivesADeferredContainerItsNewCpusWhereItGetsOthers) {
  const NodeState state = Changed(StateOf({{"a", Pool("0-3")}}), {{"a", Pool("0-1")}});
  const auto updates = PlanUpdates(state, Live({"a"}), {}, {Key("a")});
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_THAT(updates[0].properties, ElementsAre(Pair("CpusetCpus", "0-1")));
  EXPECT_FALSE(updates[0].grows);
}

TEST(PlanUpdatesTest, LetsTheFirstResourceByNameWinAndLeavesOutOomScores) {
  const ContainerRecord record{
      .allocations = {{"a", ResourceAllocation{.oci_property = "CpusetCpus", .value = "0"}},
                      {"b", ResourceAllocation{.oci_property = "CpusetCpus", .value = "1"}},
                      {"c", ResourceAllocation{.oci_property = "OomScoreAdj", .value = "5"}}}};
  EXPECT_THAT(PropertiesToApply(record, "id"), ElementsAre(Pair("CpusetCpus", "0")));
}

TEST(PlanUpdatesTest, ChangesAContainerWhoseSharedCpusChanged) {
  const ContainerRecord record{
      .allocations = {{"a",
                       ResourceAllocation{
                           .oci_property = "CpusetCpus", .value = "2", .exclusive = true}},
                      {"cpu", ResourceAllocation{.oci_property = "CpusetCpus",
                                                 .value = "2-3",
                                                 .exclusive = true,
                                                 .may_share = "0-1,4-7",
                                                 .shares = "0,4"}}},
      .applied = {{"CpusetCpus", "0-2,4"}},
      .applied_to = "id"};
  EXPECT_THAT(PropertiesToApply(record, "id"), ElementsAre(Pair("CpusetCpus", "0,2,4")));
  EXPECT_THAT(PropertiesToApply(record, "id", {4}), ElementsAre(Pair("CpusetCpus", "0,2")));
}

TEST(PlanUpdatesTest, LeavesOutCpusThatAreOfflineAndSaysNothingWithoutAny) {
  const ContainerRecord record{
      .allocations = {{"cpu", ResourceAllocation{.oci_property = "CpusetCpus", .value = "0-3"}}},
      .applied = {{"CpusetCpus", "0-3"}},
      .applied_to = "id"};
  EXPECT_THAT(PropertiesToApply(record, "id", {3}), ElementsAre(Pair("CpusetCpus", "0-2")));
  EXPECT_THAT(PropertiesToApply(record, "id", {7}), IsEmpty());
  EXPECT_THAT(PropertiesToApply(record, "id", {0, 1, 2, 3}), IsEmpty());
}

std::vector<PlannedUpdate> Updates(int shrinking, int growing) {
  std::vector<PlannedUpdate> updates;
  updates.reserve(static_cast<std::size_t>(shrinking) + static_cast<std::size_t>(growing));
  for (int i = 0; i < shrinking + growing; ++i) {
    updates.push_back({.key = {"uid", std::to_string(i)},
                       .container_id = "id" + std::to_string(i),
                       .properties = {{"CpusetCpus", "0"}},
                       .grows = i >= shrinking});
  }
  return updates;
}

TEST(RunUpdatesTest, KeepsAFewInFlight) {
  test::FakeRuntime runtime;
  runtime.Hold();
  std::size_t done = 0;
  RunUpdates(runtime, Updates(5, 0), 2, [&](const auto& results) { done = results.size(); });
  EXPECT_EQ(runtime.waiting(), 2u);
  while (runtime.waiting() > 0) {
    EXPECT_EQ(done, 0u);
    runtime.Answer();
    EXPECT_LE(runtime.waiting(), 2u);
  }
  EXPECT_EQ(done, 5u);
}

TEST(RunUpdatesTest, GrowsOnlyAfterAllOthersWereAnswered) {
  test::FakeRuntime runtime;
  runtime.Hold();
  RunUpdates(runtime, Updates(2, 1), 8, [](const auto&) {});
  EXPECT_EQ(runtime.updates().size(), 2u);
  runtime.Answer();
  EXPECT_EQ(runtime.updates().size(), 2u);
  runtime.Answer();
  EXPECT_EQ(runtime.updates().size(), 3u);
  runtime.Answer();
}

TEST(RunUpdatesTest, ReportsWhichFailed) {
  test::FakeRuntime runtime;
  runtime.Refuse("id1", Errorf(StatusCode::kDeadlineExceeded, "too slow"));
  std::vector<UpdateResult> got;
  RunUpdates(runtime, Updates(2, 0), 1, [&](std::vector<UpdateResult> r) { got = std::move(r); });
  ASSERT_EQ(got.size(), 2u);
  EXPECT_TRUE(got[0].status.ok());
  EXPECT_EQ(got[1].status.code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace qrm::manager::plan_test
