// Where plugins and checkpoint disagree, the checkpoint wins.
#include "manager/reconcile/settler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/support/answering_plugins.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"

namespace qrm::manager::settler_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SettlerTest : public testing::Test {
 protected:
  SettlerTest() {
    plugins_.Set("cpu", {});
    live_.Reset({}, {});
    checkpoint::Change change;
    change.put_containers.push_back(
        {test::SamplePod("web"),
         "main",
         {.requests = {{"cpu", 2}},
          .allocations = {{"cpu", test::OwnCpus("0-1")}},
          .origins = {{"cpu", {.plugin = "cpu", .endpoint = "/run/cpu.sock"}}}}});
    Commit(change);
  }
  void TearDown() override { state_.Stop(); }

  void Commit(const checkpoint::Change& change) {
    EXPECT_TRUE(test::RunOn(state_, [&] { return state_.Commit(change); }).ok());
  }
  void Settle(const ReconcilePlan& plan) {
    test::RunOn(state_, [&] { settler_->Settle(plan); });
    for (int i = 0; i < 20; ++i) {
      test::Settle(state_);
    }
  }
  std::vector<std::string> Problems() {
    return test::RunOn(state_, [&] { return settler_->TakeProblems(); });
  }

  const ReconcilePlan lost_{.missing = {{"cpu", {{"uid-web", "main"}}}}};
  const Machine machine_ = test::SampleMachine();
  test::AnsweringPlugins plugins_;
  test::Journal journal_;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  LiveContainers live_;
  std::vector<std::string> taught_;
  const std::shared_ptr<Settler> settler_ = std::make_shared<Settler>(
      Settler::Parts{.state = state_,
                     .plugins = plugins_,
                     .live = live_,
                     .machine = machine_,
                     .on_taught = [this](const std::string& r) { taught_.push_back(r); }});
};

TEST_F(SettlerTest, ResyncsAPluginThatLostAllocationsAndSaysSo) {
  Settle(lost_);
  EXPECT_THAT(plugins_.calls(), ElementsAre("restore cpu uid-web/main=0-1"));
  EXPECT_THAT(taught_, ElementsAre("cpu"));
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(SettlerTest, AsksAPluginThatCannotBeResyncedToAllocateOnTheRecordedNodes) {
  test::PluginScript script;
  script.restores = Errorf(StatusCode::kUnimplemented, "no such call");
  plugins_.Set("cpu", script);
  Settle(lost_);
  EXPECT_THAT(plugins_.calls(), Contains("allocate cpu"));
  const ContainerRequest asked = plugins_.allocated("cpu");
  EXPECT_EQ(asked.key, (ContainerKey{"uid-web", "main"}));
  EXPECT_EQ(asked.requests.at("cpu"), 2);
  EXPECT_EQ(asked.hint, (TopologyHint{.nodes = machine_.node_mask(), .preferred = true}))
      << "any node, since none is recorded";
}

TEST_F(SettlerTest, ReleasesWhatAContainerOnRecordRunsWithout) {
  plugins_.Set("lane", {});
  Settle({.orphans = {{"lane", {{"uid-web", "main"}}}, {"cpu", {{"uid-web", "main"}}}}});
  EXPECT_THAT(plugins_.calls(), ElementsAre("release lane uid-web/main")) << "cpu is on record";
}

TEST_F(SettlerTest, ReportsAPluginThatKeepsNothingAndResyncsItNotForever) {
  Settle(lost_);
  Settle(lost_);
  EXPECT_THAT(taught_, ElementsAre("cpu"));
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("such as main of pod uid-web")));
}

TEST_F(SettlerTest, ResyncsNothingOfAContainerThatIsGoneMeanwhile) {
  Commit({.remove_pods = {"uid-web"}});
  Settle(lost_);
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(SettlerTest, ReleasesAPodWithOneCall) {
  Settle({.orphans = {{"cpu", {{"uid-gone", "one"}, {"uid-gone", "two"}, {"uid-web", "old"}}}}});
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-gone", "release cpu uid-web/old"));
}

TEST_F(SettlerTest, SkipsRemovalsThatAreReplayed) {
  Commit({.add_pending_removals = {{"uid-gone", "cpu"}}});
  Settle({.orphans = {{"cpu", {{"uid-gone", "main"}, {"uid-lost", "main"}}}}});
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-lost")) << "each is notified once";
}

TEST_F(SettlerTest, ReleasesAllocationsWithoutAContainerBeforeTheResync) {
  Settle({.orphans = {{"cpu", {{"uid-gone", "main"}}}}, .missing = lost_.missing});
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-gone", "restore cpu uid-web/main=0-1"));
}

TEST_F(SettlerTest, StopsAtTheFirstFailureUntilTheNextRun) {
  test::PluginScript script;
  script.removes = Errorf(StatusCode::kDeadlineExceeded, "no answer");
  plugins_.Set("cpu", script);
  const ReconcilePlan plan{.orphans = {{"cpu", {{"uid-1", "main"}, {"uid-2", "main"}}}}};
  Settle(plan);
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-1"));
  EXPECT_THAT(Problems(), ElementsAre(HasSubstr("no answer")));
  Settle(plan);
  EXPECT_THAT(plugins_.calls(), ElementsAre("remove cpu uid-1", "remove cpu uid-1"));
}

TEST_F(SettlerTest, ReleasesAtMostSoManyARun) {
  ReconcilePlan plan;
  for (std::size_t i = 0; i < Settler::kCallsPerRun + 10; ++i) {
    plan.orphans["cpu"].insert({fmt::format("uid-{:04}", i), "main"});
  }
  test::RunOn(state_, [&] { settler_->Settle(plan); });
  for (std::size_t i = 0; i < 3 * Settler::kCallsPerRun; ++i) {
    test::Settle(state_);
  }
  EXPECT_EQ(plugins_.calls().size(), Settler::kCallsPerRun);
}

TEST_F(SettlerTest, ReleasesNothingOfAContainerThatWasAdmittedMeanwhile) {
  Settle({.orphans = {{"cpu", {{"uid-web", "main"}}}}});
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("uid-web"))));
}

}  // namespace
}  // namespace qrm::manager::settler_test
