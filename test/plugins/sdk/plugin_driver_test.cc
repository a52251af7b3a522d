// The order of every call: grants, plugin, disk, answer.
#include "plugins/sdk/plugin_driver.h"

#include <memory>
#include <utility>

#include <gmock/gmock.h>

#include "api/base/errorf.h"
#include "plugins/sdk/change_signal.h"
#include "test/plugins/sdk/counting_plugin.h"

namespace qrm::sdk::plugin_driver_test {
namespace {

using test::CountingPlugin;
using test::CpuRequest;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What reached the disk, and a disk that can fail.
struct Disk {
  std::vector<StateChange> changes;
  std::vector<StateChange> begun;
  Status failure;
  StoredState stored;
};

class FakeState final : public PluginState {
 public:
  explicit FakeState(Disk& disk) : disk_(disk) {}
  StatusOr<StoredState> Load() override { return disk_.stored; }
  Status Commit(const StateChange& change) override {
    if (disk_.failure.ok()) {
      disk_.changes.push_back(change);
    }
    return disk_.failure;
  }
  Status BeginAnew(const StateChange& everything) override {
    disk_.begun.push_back(everything);
    return OkStatus();
  }

 private:
  Disk& disk_;
};

class PluginDriverTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(driver_.Start().ok()); }

  std::string CpusOf(const ContainerRequest& request) {
    const StatusOr<ResourceAllocation> allocation = driver_.Allocate(request);
    return allocation.ok() ? allocation->value : MessageOf(allocation.status());
  }

  Disk disk_;
  CountingPlugin plugin_;
  PluginDriver driver_{plugin_, "cpu", std::make_unique<FakeState>(disk_)};
};

TEST_F(PluginDriverTest, AllocateIsOnDiskBeforeItIsAnswered) {
  ASSERT_EQ(CpusOf(CpuRequest("a", "main", 2)), "0-1");
  ASSERT_EQ(disk_.changes.size(), 1U);
  EXPECT_EQ(disk_.changes[0].granted, driver_.grants());
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "0-1");
}

TEST_F(PluginDriverTest, ReportsTheAllocationsThatChangedSinceTheLastAnswer) {
  CpusOf(CpuRequest("a", "main", 2));
  CpusOf(CpuRequest("gone", "main", 2));
  const ChangedAllocations first = driver_.ChangesSince("");
  EXPECT_EQ(first.changed.size(), 2U) << "nothing is known: all that is held";
  CpusOf(CpuRequest("b", "main", 2));
  ASSERT_TRUE(driver_.RemovePod("gone").ok());
  const ChangedAllocations second = driver_.ChangesSince(first.now);
  ASSERT_EQ(second.changed.size(), 1U);
  EXPECT_EQ(second.changed.at({"b", "main"}).at("cpu")->value,
            driver_.grants().at({"b", "main"}).allocation->value);
  EXPECT_TRUE(driver_.ChangesSince(second.now).changed.empty());
}

TEST_F(PluginDriverTest, RepeatedAllocateIsAnsweredFromTheGrant) {
  CpusOf(CpuRequest("a", "main", 2));
  EXPECT_EQ(CpusOf(CpuRequest("a", "main", 2)), "0-1");
  EXPECT_EQ(plugin_.allocate_calls, 1);
  EXPECT_EQ(disk_.changes.size(), 1U);
}

TEST_F(PluginDriverTest, RepeatedAllocateIsAnsweredWithWhatTheGrantIsNow) {
  CpusOf(CpuRequest("a", "main", 2));
  plugin_.reconciled[{"a", "main"}] = {.oci_property = "CpusetCpus", .value = "6-7"};
  EXPECT_EQ(CpusOf(CpuRequest("a", "main", 2)), "6-7") << "others may own the rest by now";
}

TEST_F(PluginDriverTest, AllocateOfMoreReplacesTheGrant) {
  CpusOf(CpuRequest("a", "main", 2));
  EXPECT_EQ(CpusOf(CpuRequest("a", "main", 3)), "0-2");
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "0-2");
}

TEST_F(PluginDriverTest, APluginIsAskedAgainForLessAnotherLimitAndWhatIsNotWhole) {
  ContainerRequest request = CpuRequest("a", "main", 2);
  CpusOf(request);
  CpusOf(CpuRequest("a", "main", 1));
  EXPECT_EQ(plugin_.allocate_calls, 2);
  request = CpuRequest("a", "main", 1);
  request.limit = 4;
  CpusOf(request);
  EXPECT_EQ(plugin_.allocate_calls, 3);
  plugin_.reconciled[{"a", "main"}] = {.oci_property = "CpusetCpus", .value = "0", .lacks = 1};
  ASSERT_TRUE(driver_.Reconcile().ok());
  CpusOf(request);
  EXPECT_EQ(plugin_.allocate_calls, 4);
}

TEST_F(PluginDriverTest, AllocateOnOtherNodesAsksThePluginAgain) {
  ContainerRequest request = CpuRequest("a", "main", 2);
  request.hint = TopologyHint{.nodes = {0}, .preferred = true};
  CpusOf(request);
  request.hint->nodes = {0, 1};
  CpusOf(request);
  EXPECT_EQ(plugin_.allocate_calls, 1);
  request.hint->nodes = {1};
  CpusOf(request);
  EXPECT_EQ(plugin_.allocate_calls, 2);
  EXPECT_EQ(plugin_.last_hint.nodes, (NumaMask{1}));
}

TEST_F(PluginDriverTest, FailedReplacementLeavesTheGrant) {
  CpusOf(CpuRequest("a", "main", 2));
  EXPECT_THAT(CpusOf(CpuRequest("a", "main", 99)), HasSubstr("no CPU is free"));
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "0-1");
}

TEST_F(PluginDriverTest, HintsOfAContainerThatHoldsAGrantAreItsNodes) {
  ContainerRequest request = CpuRequest("a", "main", 2);
  request.hint = TopologyHint{.nodes = {1}, .preferred = true};
  CpusOf(request);
  request.hint.reset();
  const StatusOr<HintList> hints = driver_.Hints(request);
  ASSERT_TRUE(hints.ok());
  EXPECT_THAT(hints->hints(), ElementsAre(TopologyHint{.nodes = {1}, .preferred = true}));
  EXPECT_EQ(plugin_.hint_calls, 0);
}

TEST_F(PluginDriverTest, GrantThatCannotBeKeptIsTakenBack) {
  disk_.failure = {StatusCode::kResourceExhausted, "cannot write x.db: the disk is full"};
  const StatusOr<ResourceAllocation> allocation = driver_.Allocate(CpuRequest("a", "main", 2));
  EXPECT_EQ(allocation.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(allocation.status()), HasSubstr("the disk is full"));
  EXPECT_THAT(plugin_.held, IsEmpty());
  EXPECT_THAT(driver_.grants(), IsEmpty());
}

TEST_F(PluginDriverTest, LargerGrantThatCannotBeKeptLeavesTheFormerOne) {
  CpusOf(CpuRequest("a", "main", 2));
  disk_.failure = {StatusCode::kResourceExhausted, "full"};
  EXPECT_FALSE(driver_.Allocate(CpuRequest("a", "main", 3)).ok());
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "0-1");
  EXPECT_EQ(plugin_.held.at({"a", "main"}), (CpuSet{0, 1}));

  disk_.failure = OkStatus();
  EXPECT_EQ(CpusOf(CpuRequest("b", "main", 1)), "2");
}

TEST_F(PluginDriverTest, ResyncRestoresWhatItLostBesideWhatItHas) {
  CpusOf(CpuRequest("a", "main", 1));
  const Grant lost{.request = CpuRequest("b", "main", 2), .allocation = PinCpus({4, 5})};
  ASSERT_TRUE(driver_.Restore({{lost.request.key, lost}}).ok());
  EXPECT_EQ(driver_.grants().at({"b", "main"}), lost);
  EXPECT_EQ(disk_.changes.back().granted.at({"b", "main"}), lost);
  EXPECT_THAT(plugin_.held, testing::SizeIs(2));
  EXPECT_EQ(CpusOf(CpuRequest("b", "main", 2)), "4-5");
}

TEST_F(PluginDriverTest, LearnsThatItIsResyncedEvenIfItLacksNothing) {
  CpusOf(CpuRequest("a", "main", 1));
  EXPECT_FALSE(disk_.changes.back().manager_teaches);
  ASSERT_TRUE(driver_.Restore({}).ok());
  EXPECT_EQ(disk_.changes.size(), 1U) << "there is nothing to keep";
  CpusOf(CpuRequest("b", "main", 1));
  EXPECT_TRUE(disk_.changes.back().manager_teaches);
  EXPECT_EQ(driver_.grants().size(), 2U);
}

/// Saves nothing while it has no allocations.
class SavingPlugin final : public ResourcePlugin {
 public:
  Status Restore(const Grants& grants) override {
    holds_ = !grants.empty();
    return OkStatus();
  }
  Status LoadState(const std::string& saved) override {
    saved_ = saved;
    return OkStatus();
  }
  std::string SaveState() const override { return holds_ ? saved_ : ""; }
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& /*request*/,
                                        const TopologyHint& /*hint*/) override {
    return PinCpus({0});
  }

 private:
  std::string saved_;
  bool holds_ = false;
};

TEST_F(PluginDriverTest, KeepsWhatThePluginSavedUntilTheResyncRestoresItsGrants) {
  Disk disk;
  disk.stored.saved = "what a holds";  // its grants are void: the machine was restarted
  SavingPlugin plugin;
  PluginDriver driver(plugin, "cpu", std::make_unique<FakeState>(disk));
  ASSERT_TRUE(driver.Start().ok());
  const Grant lost{.request = CpuRequest("a", "main", 2), .allocation = PinCpus({4, 5})};
  ASSERT_TRUE(driver.Restore({{lost.request.key, lost}}).ok());
  EXPECT_EQ(plugin.SaveState(), "what a holds");
  for (const StateChange& change : disk.changes) {
    EXPECT_EQ(change.saved, std::nullopt);
  }
}

TEST_F(PluginDriverTest, ResyncRestoresWhatThePluginKeptBesideItsGrants) {
  ASSERT_TRUE(driver_.Restore({}, "6-7").ok());
  EXPECT_EQ(plugin_.online, (CpuSet{6, 7}));
  EXPECT_EQ(disk_.changes.back().saved, "6-7");
}

TEST_F(PluginDriverTest, ResyncThatCannotBeKeptChangesNothing) {
  CpusOf(CpuRequest("a", "main", 1));
  disk_.failure = {StatusCode::kResourceExhausted, "full"};
  const Grant lost{.request = CpuRequest("b", "main", 2), .allocation = PinCpus({4, 5})};
  EXPECT_EQ(driver_.Restore({{lost.request.key, lost}}).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(driver_.grants().contains({"b", "main"}));
  EXPECT_FALSE(plugin_.held.contains({"b", "main"}));
}

TEST_F(PluginDriverTest, ResyncDoesNotRestoreWhatOtherContainersHave) {
  CpusOf(CpuRequest("stale", "main", 1));
  Grant recorded{.request = CpuRequest("b", "main", 2), .allocation = PinCpus({0, 1})};
  recorded.allocation.Edit().exclusive = true;
  plugin_.reconciled[{"b", "main"}] = PinCpus({1});
  EXPECT_EQ(driver_.Restore({{recorded.request.key, recorded}}).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_FALSE(driver_.grants().contains({"b", "main"}));
}

TEST_F(PluginDriverTest, ResyncDoesNotRestoreAllocationsOfAnotherPlugin) {
  Grant other{.request = CpuRequest("b", "main", 2), .allocation = PinCpus({4, 5})};
  other.request.resource = "memory";
  EXPECT_EQ(driver_.Restore({{other.request.key, other}}).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(driver_.grants(), IsEmpty());
}

TEST_F(PluginDriverTest, LostStateIsWrittenAgainWithTheChange) {
  CpusOf(CpuRequest("a", "main", 1));
  CpusOf(CpuRequest("b", "main", 1));
  disk_.failure = {StatusCode::kDataLoss, "gone"};
  EXPECT_EQ(CpusOf(CpuRequest("c", "main", 1)), "2");
  ASSERT_EQ(disk_.begun.size(), 1U);
  EXPECT_EQ(disk_.begun[0].granted, driver_.grants());

  EXPECT_TRUE(driver_.RemovePod("a").ok());
  EXPECT_EQ(disk_.begun[1].granted, driver_.grants());
  EXPECT_FALSE(disk_.begun[1].granted.contains({"a", "main"}));
}

TEST_F(PluginDriverTest, ExceptionOfThePluginRejectsOneCall) {
  plugin_.failure = [] { throw std::runtime_error("bad day"); };
  const StatusOr<ResourceAllocation> allocation = driver_.Allocate(CpuRequest("a", "main", 2));
  EXPECT_EQ(allocation.status().code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(allocation.status()), HasSubstr("Allocate of the plugin of cpu"));
  EXPECT_THAT(MessageOf(allocation.status()), HasSubstr("bad day"));

  plugin_.failure = [] { throw 7; };
  EXPECT_EQ(driver_.Allocate(CpuRequest("a", "main", 2)).status().code(), StatusCode::kInternal);

  plugin_.failure = nullptr;
  EXPECT_EQ(CpusOf(CpuRequest("a", "main", 2)), "0-1");
}

TEST_F(PluginDriverTest, UnreadableAllocationIsRejected) {
  CpusOf(CpuRequest("a", "main", 1));
  plugin_.reconciled[{"a", "main"}] = {.oci_property = "CpusetCpus", .value = "0-"};
  EXPECT_FALSE(driver_.Reconcile().ok());
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "0");
}

TEST_F(PluginDriverTest, ChangedAllocationIsAppliedWithoutADiskAndWrittenWithTheNextChange) {
  CpusOf(CpuRequest("a", "main", 1));
  plugin_.reconciled[{"a", "main"}] = {.oci_property = "CpusetCpus", .value = "5"};
  disk_.failure = {StatusCode::kResourceExhausted, "full"};
  EXPECT_TRUE(driver_.Reconcile().ok());
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "5");

  disk_.failure = OkStatus();
  EXPECT_TRUE(driver_.Reconcile().ok());
  EXPECT_EQ(disk_.changes.back().granted.at({"a", "main"}).allocation->value, "5");
  const std::size_t written = disk_.changes.size();
  EXPECT_TRUE(driver_.Reconcile().ok());
  EXPECT_EQ(disk_.changes.size(), written);
}

TEST_F(PluginDriverTest, RemovePodTakesAllItsContainersAndNoOthers) {
  CpusOf(CpuRequest("a", "one", 1));
  CpusOf(CpuRequest("a", "two", 1));
  CpusOf(CpuRequest("ab", "one", 1));
  EXPECT_TRUE(driver_.RemovePod("a").ok());
  EXPECT_THAT(plugin_.removed, ElementsAre(ContainerKey{"a", "one"}, ContainerKey{"a", "two"}));
  EXPECT_EQ(driver_.grants().size(), 1U);
  EXPECT_EQ(disk_.changes.back().removed_pod, "a");
}

TEST_F(PluginDriverTest, RemovePodMayBeRepeated) {
  CpusOf(CpuRequest("a", "one", 1));
  EXPECT_TRUE(driver_.RemovePod("a").ok());
  EXPECT_TRUE(driver_.RemovePod("a").ok());
  EXPECT_TRUE(driver_.RemovePod("never seen").ok());
  EXPECT_EQ(plugin_.removed.size(), 1U);
}

TEST_F(PluginDriverTest, RemovalThatDidNotReachTheDiskReachesItWhenRepeated) {
  CpusOf(CpuRequest("a", "one", 1));
  disk_.failure = {StatusCode::kResourceExhausted, "full"};
  EXPECT_FALSE(driver_.RemovePod("a").ok());
  disk_.failure = OkStatus();
  EXPECT_TRUE(driver_.RemovePod("a").ok());
  EXPECT_EQ(disk_.changes.back().removed_pod, "a");
}

TEST_F(PluginDriverTest, ReleaseContainerLeavesTheRestOfThePod) {
  CpusOf(CpuRequest("a", "one", 1));
  CpusOf(CpuRequest("a", "two", 1));
  EXPECT_TRUE(driver_.ReleaseContainer({"a", "one"}).ok());
  EXPECT_TRUE(driver_.ReleaseContainer({"a", "one"}).ok());
  EXPECT_THAT(plugin_.removed, ElementsAre(ContainerKey{"a", "one"}));
  EXPECT_TRUE(driver_.grants().contains({"a", "two"}));
}

TEST_F(PluginDriverTest, ReconcileOfNoChangeDoesNotTouchTheDisk) {
  CpusOf(CpuRequest("a", "main", 2));
  plugin_.reconciled[{"a", "main"}] = driver_.grants().at({"a", "main"}).allocation;
  EXPECT_TRUE(driver_.Reconcile().ok());
  EXPECT_EQ(disk_.changes.size(), 1U);
}

TEST_F(PluginDriverTest, ReconcileOfAnUnknownContainerIsThePluginsFault) {
  plugin_.reconciled[{"ghost", "main"}] = PinCpus({1});
  EXPECT_EQ(driver_.Reconcile().code(), StatusCode::kInternal);
}

TEST_F(PluginDriverTest, SetPoolsMovesContainersAndIsKept) {
  CpusOf(CpuRequest("a", "main", 2));
  plugin_.reconciled[{"a", "main"}] = PinCpus({0, 1});
  EXPECT_TRUE(driver_.SetPools({{"online", {4, 5, 6}}}).ok());
  EXPECT_EQ(driver_.grants().at({"a", "main"}).allocation->value, "4-6");
  EXPECT_EQ(disk_.changes.back().saved, "4-6");
}

TEST_F(PluginDriverTest, PoolsThatCannotBeKeptAreAsBefore) {
  EXPECT_TRUE(driver_.SetPools({{"online", {1}}}).ok());
  disk_.failure = {StatusCode::kResourceExhausted, "full"};
  EXPECT_EQ(driver_.SetPools({{"online", {2}}}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(plugin_.online, (CpuSet{1}));
}

TEST(PluginDriverStartTest, GivesThePluginItsSavedState) {
  const ContainerRequest request = CpuRequest("a", "main", 1);
  Disk disk{.stored = {.grants = {{request.key, {request, PinCpus({3})}}}, .saved = "0-3"}};
  CountingPlugin plugin;
  PluginDriver driver(plugin, "cpu", std::make_unique<FakeState>(disk));
  ASSERT_TRUE(driver.Start().ok());
  EXPECT_EQ(plugin.restored, disk.stored.grants);
  EXPECT_EQ(plugin.online, CpuSet::Range(0, 3));
  EXPECT_EQ((*driver.Allocate(request))->value, "3");
  EXPECT_EQ(plugin.allocate_calls, 0);
}

TEST(PluginDriverStartTest, UnusableSavedStateDoesNotStopThePlugin) {
  Disk disk{.stored = {.saved = "no CPU list"}};
  CountingPlugin plugin;
  PluginDriver driver(plugin, "cpu", std::make_unique<FakeState>(disk));
  EXPECT_TRUE(driver.Start().ok());
}

/// Has other options than most plugins, or cannot take over allocations.
class UnwillingPlugin final : public ResourcePlugin {
 public:
  PluginOptions Options() const override { return options; }
  Status Restore(const Grants& /*grants*/) override { return restores; }
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& /*request*/,
                                        const TopologyHint& /*hint*/) override {
    return PinCpus({7});
  }

  PluginOptions options = ResourcePlugin::Options();
  Status restores;
};

TEST_F(PluginDriverTest, ReplacementBeginsWithTheGrantsAndTheSavedState) {
  CpusOf(CpuRequest("a", "main", 2));
  ASSERT_TRUE(driver_.SetPools({{"online", {5}}}).ok());
  auto next = std::make_unique<CountingPlugin>();
  CountingPlugin& second = *next;
  ASSERT_TRUE(driver_.Prepare(*next).ok());
  EXPECT_EQ(CpusOf(CpuRequest("b", "main", 1)), "2") << "the former one serves until Replace";
  ASSERT_TRUE(driver_.Prepare(*next).ok());
  driver_.Replace(std::move(next));
  EXPECT_EQ(second.restored, driver_.grants());
  EXPECT_EQ(second.online, CpuSet{5});
  EXPECT_EQ(CpusOf(CpuRequest("c", "main", 1)), "3");
  EXPECT_EQ(second.allocate_calls, 1);
}

TEST_F(PluginDriverTest, ReplacedPluginIsRetiredOnce) {
  for (int turn = 0; turn < 2; ++turn) {
    auto next = std::make_unique<CountingPlugin>();
    ASSERT_TRUE(driver_.Prepare(*next).ok());
    EXPECT_EQ(plugin_.retired, turn) << "it serves until Replace";
    driver_.Replace(std::move(next));
    EXPECT_EQ(plugin_.retired, 1);
  }
}

TEST_F(PluginDriverTest, ReplacementAsksForAReconcileAndNotifiesTheSameListeners) {
  int heard = 0;
  plugin_.changes().Connect([&] { ++heard; });
  auto next = std::make_unique<CountingPlugin>();
  CountingPlugin& second = *next;
  ASSERT_TRUE(driver_.Prepare(*next).ok());
  driver_.Replace(std::move(next));
  EXPECT_EQ(heard, 1);
  second.NotifyChanged();
  EXPECT_EQ(heard, 2);
}

TEST_F(PluginDriverTest, PluginThatCannotTakeOverIsRejectedAndTheFormerContinues) {
  CpusOf(CpuRequest("a", "main", 2));
  UnwillingPlugin next;
  next.restores = Errorf(StatusCode::kFailedPrecondition, "cannot hold that");
  EXPECT_THAT(MessageOf(driver_.Prepare(next)), HasSubstr("cannot hold that"));
  next.restores = OkStatus();
  next.options.pre_start_required = true;
  EXPECT_THAT(MessageOf(driver_.Prepare(next)), HasSubstr("its plugin options changed"));
  EXPECT_EQ(CpusOf(CpuRequest("b", "main", 1)), "2");
}

TEST_F(PluginDriverTest, ValuesOfAReplacementWaitForTheDisk) {
  auto next = std::make_unique<CountingPlugin>();
  ASSERT_TRUE(driver_.Prepare(*next).ok());
  next->online = {6};
  disk_.failure = Errorf(StatusCode::kResourceExhausted, "disk full");
  driver_.Replace(std::move(next));
  disk_.failure = OkStatus();
  ASSERT_TRUE(driver_.Reconcile().ok());
  EXPECT_EQ(disk_.changes.back().saved, "6");
}

}  // namespace
}  // namespace qrm::sdk::plugin_driver_test
