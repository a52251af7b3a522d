#include "manager/reconcile/reconciler.h"

#include <atomic>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/log.h"
#include "test/support/answering_plugins.h"
#include "test/support/await.h"
#include "test/support/fake_runtime.h"
#include "test/support/loop_thread.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"

namespace qrm::manager {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const ContainerKey kKey{"uid-web", "main"};

// One container that runs in the pool 0-3, and a reconciler that runs when it is triggered.
class ReconcilerTest : public testing::Test {
 protected:
  ReconcilerTest() {
    CpuHolds("0-3");
    live_.Reset({{"uid-web", {"sandbox"}}}, {{kKey, {"id", "sandbox", true, "/kubepods/pod/id"}}});
    test::RunOn(state_, [this] {
      checkpoint::Change change;
      change.put_containers.push_back({test::SamplePod("web"),
                                       "main",
                                       {.allocations = {{"cpu", Pool("0-3")}},
                                        .applied = {{"CpusetCpus", "0-3"}},
                                        .applied_to = "id"}});
      ASSERT_TRUE(state_.Commit(change).ok());
    });
  }
  void TearDown() override {
    loop_.Run([this] { reconciler_.Stop(); });
    state_.Stop();
    loop_.Stop();
  }

  static ResourceAllocation Pool(const std::string& cpus) {
    return {.oci_property = "CpusetCpus", .value = cpus};
  }
  void CpuHolds(const std::string& cpus, AllocationByContainer more = {}) {
    test::PluginScript script;
    script.holds = std::move(more);
    script.holds->emplace(kKey, AllocationByResource{{"cpu", Pool(cpus)}});
    plugins_.Set("cpu", std::move(script));
  }
  // As CpuHolds, but the plugin says the same thing again and again; `readings_` counts how often
  // somebody looks.
  void CpuRepeats(const std::string& cpus) {
    auto said = std::make_shared<const AllocationByContainer>(
        AllocationByContainer{{kKey, {{"cpu", Pool(cpus)}}}});
    test::PluginScript script;
    script.repeats = calls::HeldAllocations(said, [this, said] {
      ++readings_;
      return said;
    });
    plugins_.Set("cpu", std::move(script));
  }
  // One whole run, from trigger to end.
  void RunOnce() {
    const uint64_t before = reconciler_.GetStatus().runs;
    reconciler_.Trigger();
    ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().runs > before; }));
    loop_.Run([] {});
  }
  Reconciler::Parts Parts() {
    return {.io = loop_.io(),
            .state = state_,
            .plugins = plugins_,
            .runtime = runtime_,
            .live = live_,
            .machine = machine_,
            .drift = drift_,
            .stands_aside = [this] { return aside_.load(); }};
  }
  // What the kernel has for the container.
  void KernelHas(const std::string& cpus) {
    const MutexLock lock(mutex_);
    kernel_ = CgroupCpuset{.cpus = *CpuSet::Parse(cpus), .mems = {0}};
  }
  StatusOr<CgroupCpuset> ReadKernel() {
    const MutexLock lock(mutex_);
    return kernel_;
  }
  checkpoint::ContainerRecord Record() { return *state_.Load()->Find(kKey); }

  std::atomic<int> readings_ = 0;
  test::Journal journal_;
  test::AnsweringPlugins plugins_;
  test::FakeRuntime runtime_;
  const Machine machine_ = test::SampleMachine();
  LiveContainers live_;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  test::LoopThread loop_;
  std::atomic<bool> aside_ = false;
  Mutex mutex_;
  StatusOr<CgroupCpuset> kernel_ QRM_GUARDED_BY(mutex_) = Errorf(StatusCode::kNotFound,
                                                                 "no such cgroup");
  ForeignWrites writes_;
  DriftCheck drift_{{.read = [this](const std::string&) { return ReadKernel(); },
                     .live = live_,
                     .writes = writes_}};
  Reconciler reconciler_{Parts(), {.period = std::chrono::hours(1)}};
};

TEST_F(ReconcilerTest, NeitherWritesNorUpdatesOnAnIdleNode) {
  const std::size_t before = journal_.commits();
  RunOnce();
  EXPECT_EQ(journal_.commits(), before);
  EXPECT_TRUE(runtime_.updates().empty());
}

TEST_F(ReconcilerTest, LooksOnceAtAnAnswerThatRepeatsOnAnIdleNode) {
  CpuRepeats("0-3");
  RunOnce();
  RunOnce();
  RunOnce();
  EXPECT_EQ(readings_, 1);
}

TEST_F(ReconcilerTest, LooksAgainAtTheSameAnswerWhenAContainerStarts) {
  live_.Add(kKey, {"id", "sandbox", false});
  CpuRepeats("0-1");
  RunOnce();  // commits 0-1
  RunOnce();  // idle but for the container, which cannot be updated yet
  RunOnce();
  EXPECT_EQ(readings_, 2);
  EXPECT_TRUE(runtime_.updates().empty());
  live_.MarkStarted(kKey, "id");
  RunOnce();
  EXPECT_EQ(readings_, 3);
  EXPECT_EQ(runtime_.updates().size(), 1u);
}

TEST_F(ReconcilerTest, LooksAgainAtTheSameAnswerWhenTheStateChanged) {
  CpuRepeats("0-3");
  RunOnce();
  test::RunOn(state_, [this] {
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", Record()});
    change.put_containers.back().record.applied.clear();
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1u);
}

TEST_F(ReconcilerTest, LooksAgainAtTheSameAnswerWhileAnUpdateFails) {
  CpuRepeats("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kInternal, "cgroup is busy"));
  RunOnce();
  RunOnce();
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 3u);
}

TEST_F(ReconcilerTest, CommitsThenUpdatesThenNotesWhatWasApplied) {
  CpuHolds("0-1");
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 1u);
  EXPECT_EQ(runtime_.updates()[0].container_id, "id");
  EXPECT_EQ(runtime_.updates()[0].resources.cpuset_cpus, "0-1");
  EXPECT_EQ(Record().allocations.at("cpu").value, "0-1");
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  EXPECT_EQ(reconciler_.GetStatus().updates, 1u);
  EXPECT_TRUE(reconciler_.LastUpdateOf(kKey).has_value());
  EXPECT_FALSE(reconciler_.LastUpdateOf({"uid-web", "other"}).has_value());
}

TEST_F(ReconcilerTest, TriesAFailedUpdateAgainInTheNextRun) {
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kUnavailable, "cannot update id: nobody listens"));
  RunOnce();
  EXPECT_FALSE(Record().applied.contains("CpusetCpus")) << "it may have been applied all the same";
  EXPECT_THAT(reconciler_.GetStatus().last_problem, HasSubstr("nobody listens"));
  runtime_.Accept("id");
  RunOnce();
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  EXPECT_EQ(reconciler_.GetStatus().last_problem, "");
}

// The runtime may apply it later than anybody waits for it.
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

TEST_F(ReconcilerTest, LogsAProblemThatLastsOnce) {
  int lines = 0;
  log::SetSink([&](log::Level, const std::string& line) {
    lines += line.find("reconcile found a problem") != std::string::npos ? 1 : 0;
  });
  CpuHolds("0-1");
  runtime_.Refuse("id", Errorf(StatusCode::kUnavailable, "nobody listens"));
  RunOnce();
  RunOnce();
  log::SetSink({});
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(reconciler_.GetStatus().failures, 2u);
}

TEST_F(ReconcilerTest, RepairsAContainerWhoseAppliedValueIsUnknown) {
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record = Record();
    record.applied.clear();
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", record});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 1u);
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-3");
}

TEST_F(ReconcilerTest, TellsTheRuntimeAgainWhatATrimmedContainerHas) {
  CpuRepeats("0-3");
  RunOnce();
  live_.MarkTrimmed(kKey, "id");  // its owner came and went before anybody was asked
  RunOnce();
  ASSERT_EQ(runtime_.updates().size(), 1u);
  EXPECT_EQ(runtime_.updates()[0].resources.cpuset_cpus, "0-3");
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1u) << "once";
}

TEST_F(ReconcilerTest, SendsTheUpdateOfAContainerThatIsTrimmedMeanwhileAgainAndBlamesNobody) {
  CpuHolds("0-1");
  KernelHas("0-3");
  runtime_.on_update = [this](const ContainerUpdate&) {
    live_.MarkTrimmed(kKey, "id");
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

TEST_F(ReconcilerTest, ReleasesWhatIsHeldForUnknownContainers) {
  CpuHolds("0-3", {{{"uid-web", "ghost"}, {{"cpu", Pool("0-3")}}},
                   {{"uid-gone", "main"}, {{"cpu", Pool("0-3")}}}});
  RunOnce();
  // One call after the other, behind what the loop has to do meanwhile.
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
  Reconciler early({loop_.io(), state_, plugins_, runtime_, unsynchronized, machine_, drift_}, {});
  CpuHolds("0-3", {{{"uid-gone", "main"}, {{"cpu", Pool("0-3")}}}});
  early.Trigger();
  ASSERT_TRUE(test::Await([&] { return early.GetStatus().runs == 1; }));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("uid-gone"))));
  loop_.Run([&] { early.Stop(); });
}

TEST_F(ReconcilerTest, ReleasesNothingWhileNobodyCouldReadTheCheckpoint) {
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

// Runs that ask only for changes.
class SmallRunTest : public ReconcilerTest {
 protected:
  void CpuChanged(AllocationByContainer changed, const std::string& now) {
    test::PluginScript script;
    script.changes = sdk::ChangedAllocations{.now = now, .changed = std::move(changed)};
    plugins_.Set("cpu", std::move(script));
  }
  /// Until the plugins were called so often, and the run has ended.
  void AwaitCalls(std::size_t count) {
    ASSERT_TRUE(test::Await([&] { return plugins_.calls().size() >= count; }));
    test::Settle(state_);
    loop_.Run([] {});
    test::Settle(state_);
    loop_.Run([] {});
  }
};

TEST_F(SmallRunTest, BringsToContainersWhatPluginsChanged) {
  CpuChanged({{kKey, {{"cpu", Pool("0-1")}}}}, "now-1");
  reconciler_.TriggerChanges();
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().updates == 1; }));
  EXPECT_EQ(Record().allocations.at("cpu").value, "0-1");
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since "));
}

TEST_F(SmallRunTest, AsksForWhatChangedSinceTheAnswerThatWasDealtWith) {
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  AwaitCalls(1);
  reconciler_.TriggerChanges();
  AwaitCalls(2);
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since ", "changes cpu since now-1"));
}

TEST_F(SmallRunTest, LeavesAloneWhatPluginsDoNotName) {
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  AwaitCalls(1);
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("restore"))));
  EXPECT_EQ(Record().allocations.at("cpu").value, "0-3");
}

TEST_F(SmallRunTest, AsksPluginsThatCannotTellForEverything) {
  CpuHolds("0-1");
  reconciler_.TriggerChanges();
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().updates == 1; }));
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  AwaitCalls(2);
  reconciler_.TriggerChanges();
  AwaitCalls(3);
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since ", "holdings cpu", "holdings cpu"));
}

TEST_F(SmallRunTest, BringsWhatIsOnRecordToAContainerThatHasStarted) {
  test::RunOn(state_, [this] {
    checkpoint::ContainerRecord record = Record();
    record.allocations["cpu"] = Pool("0-2");
    checkpoint::Change change;
    change.put_containers.push_back({test::SamplePod("web"), "main", std::move(record)});
    ASSERT_TRUE(state_.Commit(change).ok());
  });
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges(kKey);
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().updates == 1; }));
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-2");
}

TEST_F(SmallRunTest, TellsTheRuntimeAgainWhatATrimmedContainerHas) {
  live_.MarkTrimmed(kKey, "id");
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().updates == 1; }));
  EXPECT_EQ(runtime_.updates()[0].resources.cpuset_cpus, "0-3");
}

TEST_F(SmallRunTest, AsksAgainForAnAnswerThatCouldNotBeUsed) {
  test::PluginScript away;
  away.changes = Status(StatusCode::kUnavailable, "the cpu plugin is away");
  plugins_.Set("cpu", away);
  reconciler_.TriggerChanges();
  AwaitCalls(1);
  EXPECT_THAT(reconciler_.GetStatus().last_problem, HasSubstr("away"));
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  AwaitCalls(2);
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since ", "changes cpu since "));
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
  EXPECT_EQ(Record().allocations.at("cpu").value, "0-3");
  EXPECT_EQ(reconciler_.GetStatus().last_problem, "") << "the cpu plugin was not asked either";
}

TEST_F(ReconcilerTest, RepairsACpusetThatSomebodyElseChangedAndSaysItOnce) {
  int lines = 0;
  log::SetSink([&](log::Level, const std::string& line) {
    lines += line.find("somebody else sets a container's cpuset") != std::string::npos ? 1 : 0;
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

TEST_F(ReconcilerTest, AppliesWhatTheDiskRefuses) {
  CpuHolds("0-1");
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  RunOnce();
  EXPECT_EQ(runtime_.updates().size(), 1U);
  EXPECT_EQ(Record().allocations.at("cpu").value, "0-1");
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
}

}  // namespace
}  // namespace qrm::manager
