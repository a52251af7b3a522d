// Runs of the reconciler that ask only for plugins' changes.
#include <chrono>
#include <future>
#include <string>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/reconcile/reconciler_fixture.h"

namespace qrm::manager::small_run_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SmallRunTest : public ReconcilerTest {
 protected:
  void CpuChanged(AllocationByContainer changed, const std::string& now) {
    test::PluginScript script;
    script.changes = sdk::ChangedAllocations{.now = now, .changed = std::move(changed)};
    plugins_.Set("cpu", std::move(script));
  }
  /// Lets the I/O loop run its timers for so long.
  bool RunsFor(std::chrono::milliseconds time) {
    std::promise<void> over;
    boost::asio::steady_timer timer(loop_.io());
    loop_.Run([&] {
      timer.expires_after(time);
      timer.async_wait([&](const boost::system::error_code&) { over.set_value(); });
    });
    return over.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }
  /// Waits until the plugins were called so often, and the run has ended.
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
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0-1");
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

TEST_F(SmallRunTest, AsksSoonWhenNoAdmissionWaits) {
  CpuChanged({}, "now-1");
  reconciler_.TriggerChangesSoon();
  reconciler_.TriggerChangesSoon();
  AwaitCalls(1);
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since "));
}

TEST_F(SmallRunTest, AnEarlierRunReplacesTheRequestedOne) {
  CpuChanged({}, "now-1");
  reconciler_.TriggerChangesSoon();
  reconciler_.TriggerChanges();
  AwaitCalls(1);
  ASSERT_TRUE(RunsFor(3 * Reconciler::kSoon));
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since "));
}

TEST_F(SmallRunTest, ChangesNothingThatPluginsDoNotName) {
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  AwaitCalls(1);
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("restore"))));
  EXPECT_EQ(Record().allocations.at("cpu")->value, "0-3");
}

TEST_F(SmallRunTest, AsksPluginsThatCannotReportForEverything) {
  CpuHolds("0-1");
  reconciler_.TriggerChanges();
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().updates == 1; }));
  EXPECT_EQ(Record().applied.at("CpusetCpus"), "0-1");
  AwaitCalls(2);
  reconciler_.TriggerChanges();
  AwaitCalls(3);
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since ", "holdings cpu", "holdings cpu"));
}

TEST_F(SmallRunTest, AppliesTheRecordToAContainerThatHasStarted) {
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

TEST_F(SmallRunTest, SendsADeferredContainersValuesToTheRuntimeAgain) {
  live_.Defer(kKey, "id", {});
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().updates == 1; }));
  EXPECT_EQ(runtime_.updates()[0].resources.cpuset_cpus, "0-3");
}

TEST_F(SmallRunTest, AsksAgainForAnAnswerThatCouldNotBeUsed) {
  test::PluginScript away;
  away.changes = Status(StatusCode::kUnavailable, "the cpu plugin is not running");
  plugins_.Set("cpu", away);
  reconciler_.TriggerChanges();
  AwaitCalls(1);
  EXPECT_THAT(reconciler_.GetStatus().last_problem, HasSubstr("not running"));
  CpuChanged({}, "now-1");
  reconciler_.TriggerChanges();
  AwaitCalls(2);
  EXPECT_THAT(plugins_.calls(), ElementsAre("changes cpu since ", "changes cpu since "));
}

}  // namespace
}  // namespace qrm::manager::small_run_test
