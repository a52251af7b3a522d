#include "manager/reconcile/reconciler.h"

#include <atomic>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "test/manager/reconcile/reconciler_fixture.h"
#include "test/support/answering_plugins.h"
#include "test/support/await.h"
#include "test/support/fake_runtime.h"
#include "test/support/loop_thread.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"

namespace qrm::manager::reconciler_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(ReconcilerTest, NeitherWritesNorUpdatesOnAnIdleNode) {
  const std::size_t before = journal_.commits();
  RunOnce();
  EXPECT_EQ(journal_.commits(), before);
  EXPECT_TRUE(runtime_.updates().empty());
}

TEST_F(ReconcilerTest, UpdatesAContainerThatHasStartedSinceTheSameAnswer) {
  live_.Add(kKey, {"id", "sandbox", false});
  CpuHolds("0-1");
  RunOnce();  // commits 0-1
  RunOnce();  // idle except for the container, which cannot be updated yet
  RunOnce();
  EXPECT_TRUE(runtime_.updates().empty());
  live_.MarkStarted(kKey, "id");
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1u);
}

TEST_F(ReconcilerTest, LooksAgainAtTheSameAnswerWhenTheStateChanged) {
  CpuHolds("0-3");
  RunOnce();
  test::RunOn(state_, [this] {
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", Record()});
    change.put_containers.back().record.applied.Edit().clear();
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1u);
}

TEST_F(ReconcilerTest, SendsAnUpdateAgainInEachRunWhileItFails) {
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kInternal, "cgroup is busy"));
  RunOnce();
  RunOnce();
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 3u);
}

TEST_F(ReconcilerTest, CommitsThenUpdatesThenRecordsTheAppliedValues) {
  CpuHolds("0-1");
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 1u);
  EXPECT_EQ(runtime_.updates()[0].container_id, "id");
  EXPECT_EQ(runtime_.updates()[0].resources.cpuset_cpus, "0-1");
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0-1");
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  EXPECT_EQ(reconciler_.GetStatus().updates, 1u);
  EXPECT_TRUE(reconciler_.LastUpdateOf(kKey).has_value());
  EXPECT_FALSE(reconciler_.LastUpdateOf({"uid-web", "other"}).has_value());
}

TEST_F(ReconcilerTest, TriesAFailedUpdateAgainInTheNextRun) {
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kUnavailable, "cannot update id: connection refused"));
  RunOnce();
  EXPECT_FALSE(Record().applied.contains("CpusetCpus")) << "it may have been applied all the same";
  EXPECT_THAT(reconciler_.GetStatus().last_problem, HasSubstr("connection refused"));
  runtime_.Accept("id");
  RunOnce();
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  EXPECT_EQ(reconciler_.GetStatus().last_problem, "");
}

// The runtime may apply it after every deadline.
TEST_F(ReconcilerTest, SendsTheFormerValueAgainAfterAnUpdateThatTimedOut) {
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kDeadlineExceeded, "no answer"));
  RunOnce();
  runtime_.Accept("id");
  CpuHolds("0-3");
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 2u);
  EXPECT_EQ(runtime_.updates()[1].resources.cpuset_cpus, "0-3");
}

TEST_F(ReconcilerTest, ReportsContainersWhoseMemoryDidNotMove) {
  CpuHolds("0-3");
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record = Record();
    record.allocations["memory"].Edit() = {.oci_property = "CpusetMems", .value = "1"};
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  MemoryIsOn(0);
  RunOnce();
  ASSERT_EQ(Record().applied.at("CpusetMems"), "1");
  RunOnce();
  RunOnce();
  EXPECT_THAT(reconciler_.GetStatus().last_problem, HasSubstr("still on NUMA nodes 0"));
  MemoryIsOn(1);
  RunOnce();
  EXPECT_EQ(reconciler_.GetStatus().last_problem, "");
}

TEST_F(ReconcilerTest, LogsAProblemThatLastsOnce) {
  int lines = 0;
  log::SetSink([&](log::Level, const std::string& line) {
    lines += line.find("reconcile found a problem") != std::string::npos ? 1 : 0;
  });
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kUnavailable, "connection refused"));
  RunOnce();
  RunOnce();
  log::SetSink({});
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(reconciler_.GetStatus().failures, 2u);
}

TEST_F(ReconcilerTest, RepairsAContainerWhoseAppliedValueIsUnknown) {
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record = Record();
    record.applied.Edit().clear();
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 1u);
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-3");
}

TEST_F(ReconcilerTest, SendsADeferredContainersValuesToTheRuntimeAgain) {
  CpuHolds("0-3");
  RunOnce();
  live_.Defer(kKey, "id", {});  // its owner came and went before any plugin was asked
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 1u);
  EXPECT_EQ(runtime_.updates()[0].resources.cpuset_cpus, "0-3");
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1u) << "once";
}

TEST_F(ReconcilerTest, SendsTheUpdateOfAContainerThatLosesCpusMeanwhileAgainWithoutDrift) {
  CpuHolds("0-1");
  KernelHas("0-3");
  runtime_.on_update = [this](const ContainerUpdate&) {
    live_.Defer(kKey, "id", {});
    KernelHas("1");
  };
  RunOnce();
  EXPECT_FALSE(Record().applied.contains("CpusetCpus"));
  EXPECT_EQ(reconciler_.GetStatus().last_problem, "");
  runtime_.on_update = [this](const ContainerUpdate& update) {
    KernelHas(update.resources.cpuset_cpus);
  };
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 2u);
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  EXPECT_EQ(writes_.repairs(), 0u);
}

TEST_F(ReconcilerTest, TakesAContainerThatEndedMeanwhileForNoProblem) {
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kNotFound, "no such container"));
  RunOnce();
  EXPECT_EQ(reconciler_.GetStatus().failures, 0u);
}

TEST_F(ReconcilerTest, ReleasesAllocationsOfUnknownContainers) {
  CpuHolds("0-3", {{{"uid-web", "ghost"}, {{"cpu", Pool("0-3")}}},
                   {{"uid-gone", "main"}, {{"cpu", Pool("0-3")}}}});
  RunOnce();
  // One call after another, after the loop's other work.
  ASSERT_TRUE(test::Await([&] { return plugins_.calls().size() >= 3; }));
  EXPECT_THAT(plugins_.calls(), Contains("release cpu uid-web/ghost"));
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-gone"));
}

TEST_F(ReconcilerTest, ReleasesNothingThatRunsOrBeforeTheRuntimeHasSpoken) {
  live_.Add({"uid-other", "main"}, {"other", "sandbox2", true});
  CpuHolds("0-3", {{{"uid-other", "main"}, {{"cpu", Pool("0-3")}}}});
  RunOnce();
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("uid-other"))));

  LiveContainers unsynchronized;
  Reconciler early({loop_.io(), state_, plugins_, runtime_, unsynchronized, machine_, drift_},
                   {.period = std::chrono::milliseconds(10)});
  CpuHolds("0-3", {{{"uid-gone", "main"}, {{"cpu", Pool("0-3")}}}});
  loop_.Run([&] { early.Start(); });  // the runtime is not running
  ASSERT_TRUE(test::Await([&] { return early.GetStatus().runs >= 2; }));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("uid-gone"))));
  loop_.Run([&] { early.Stop(); });
}

TEST_F(ReconcilerTest, FirstRunWaitsForTheRuntimesContainers) {
  LiveContainers live;
  Reconciler early({loop_.io(), state_, plugins_, runtime_, live, machine_, drift_},
                   {.period = std::chrono::hours(1)});
  plugins_.ForgetCalls();
  loop_.Run([&] { early.Start(); });
  early.Trigger("cpu");
  early.TriggerChanges({});
  loop_.Run([] {});
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  live.Reset({}, {});
  early.Trigger();
  ASSERT_TRUE(test::Await([&] { return early.GetStatus().runs >= 1; }));
  EXPECT_THAT(plugins_.calls(), Contains("holdings cpu"));
  loop_.Run([&] { early.Stop(); });
}

TEST_F(ReconcilerTest, ReleasesNothingWhileTheCheckpointCannotBeRead) {
  test::Journal journal;
  journal.Hide(Errorf(StatusCode::kFailedPrecondition, "no permission"));
  StateLoop unread(test::OpenMemoryStore(journal));
  Reconciler blind({loop_.io(), unread, plugins_, runtime_, live_, machine_, drift_}, {});
  CpuHolds("0-3", {{{"uid-gone", "main"}, {{"cpu", Pool("0-3")}}}});
  blind.Trigger();
  ASSERT_TRUE(test::Await([&] { return blind.GetStatus().runs == 1; }));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("uid-gone"))));
  loop_.Run([&] { blind.Stop(); });
  unread.Stop();
}

TEST_F(ReconcilerTest, AsksAPluginThatCannotReleaseOnlyOnce) {
  test::PluginScript script;
  script.releases = Errorf(StatusCode::kUnimplemented, "no such call");
  script.holds = AllocationByContainer{{kKey, {{"cpu", Pool("0-3")}}},
                                       {{"uid-web", "ghost"}, {{"cpu", Pool("0-3")}}}};
  plugins_.Set("cpu", script);
  RunOnce();
  plugins_.ForgetCalls();
  RunOnce();
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("release"))));
}

TEST_F(ReconcilerTest, MakesOneMoreRunOfAllTriggersDuringARun) {
  runtime_.Hold();
  CpuHolds("0-1");
  reconciler_.Trigger();
  ASSERT_TRUE(test::Await([&] { return runtime_.waiting() == 1; }));
  for (int i = 0; i < 5; ++i) {
    reconciler_.Trigger();
  }
  loop_.Run([this] { runtime_.Answer(); });
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().runs == 2; }));
  test::Settle(state_);
  loop_.Run([] {});
  EXPECT_EQ(reconciler_.GetStatus().runs, 2u);
}

TEST_F(ReconcilerTest, AsksOnlyThePluginThatSaysItChanged) {
  CpuHolds("0-1");
  reconciler_.Trigger("cpu");
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().runs == 1; }));
  EXPECT_THAT(plugins_.calls(), ElementsAre("holdings cpu"));
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
}

TEST_F(ReconcilerTest, JoinsTriggersOfSeveralPluginsInTheNextRun) {
  runtime_.Hold();
  CpuHolds("0-1");
  reconciler_.Trigger("cpu");
  ASSERT_TRUE(test::Await([&] { return runtime_.waiting() == 1; }));
  plugins_.Set("nic", {});
  reconciler_.Trigger("nic");
  reconciler_.Trigger("cpu");
  reconciler_.Trigger("nic");
  loop_.Run([this] { runtime_.Answer(); });
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().runs == 2; }));
  EXPECT_THAT(plugins_.calls(), ElementsAre("holdings cpu", "holdings cpu", "holdings nic"));
}

TEST_F(ReconcilerTest, TakesNothingOfAPluginThatWasNotAsked) {
  test::PluginScript memory;
  memory.holds = AllocationByContainer{{kKey, {{"memory", {}}, {"cpu", Pool("0")}}}};
  plugins_.Set("memory", memory);
  reconciler_.Trigger("memory");
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().runs == 1; }));
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0-3");
  EXPECT_EQ(reconciler_.GetStatus().last_problem, "") << "the cpu plugin was not asked either";
}

TEST_F(ReconcilerTest, RepairsACpusetThatAnotherProcessChangedAndSaysItOnce) {
  int lines = 0;
  log::SetSink([&](log::Level, const std::string& line) {
    lines += line.find("drift corrected") != std::string::npos ? 1 : 0;
  });
  runtime_.on_update = [this](const ContainerUpdate& update) {
    KernelHas(update.resources.cpuset_cpus);
  };
  for (std::size_t times = 1; times <= 3; ++times) {
    KernelHas("0-7");
    reconciler_.Trigger();
    ASSERT_TRUE(test::Await([&] {
      return Record().applied.contains("CpusetCpus") && runtime_.updates().size() == times;
    }));
    EXPECT_EQ(runtime_.updates().back().resources.cpuset_cpus, "0-3");
  }
  log::SetSink({});
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(writes_.repairs(), 3u);
}

TEST_F(ReconcilerTest, TakesAnUpdateThatTheKernelDoesNotShowForNone) {
  KernelHas("0-7");
  CpuHolds("0-1");
  RunOnce();
  EXPECT_THAT(reconciler_.GetStatus().last_problem, HasSubstr("the kernel has"));
  EXPECT_FALSE(Record().applied.contains("CpusetCpus"));
  KernelHas("0-1");
  EXPECT_TRUE(test::Await([&] {
    reconciler_.Trigger();
    return Record().applied == StringMap{{"CpusetCpus", "0-1"}};
  }));
}

TEST_F(ReconcilerTest, SendsNothingWhileItStandsAside) {
  aside_ = true;
  KernelHas("0-7");
  CpuHolds("0-1");
  RunOnce();
  EXPECT_THAT(runtime_.updates(), IsEmpty());
  EXPECT_EQ(writes_.repairs(), 0u);
  KernelHas("0-1");
  aside_ = false;
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1u);
}

TEST_F(ReconcilerTest, RunsEveryPeriod) {
  Reconciler often(Parts(), {.period = std::chrono::milliseconds(1)});
  loop_.Run([&] { often.Start(); });
  EXPECT_TRUE(test::Await([&] { return often.GetStatus().runs >= 3; }));
  loop_.Run([&] { often.Stop(); });
}

TEST_F(ReconcilerTest, AppliesWhatTheDiskRejects) {
  CpuHolds("0-1");
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1U);
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0-1");
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
}

}  // namespace
}  // namespace qrm::manager::reconciler_test
