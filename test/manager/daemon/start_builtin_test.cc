// Built-in plugins start with the checkpoint's records, and keep no state of their own.
#include "manager/daemon/start_builtin.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/running_plugin.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::start_builtin_test {
namespace {

using test::CountingPlugin;

class StartBuiltinTest : public testing::Test {
 protected:
  StartBuiltinTest() {
    auto plugin = std::make_unique<CountingPlugin>();
    plugin_ = plugin.get();
    builtin_ = {.resource = "cpu", .plugin = std::move(plugin)};
  }

  void Start(const checkpoint::Change& recorded) {
    const auto found = checkpoint::NodeState().With(recorded);
    auto started = StartBuiltin(builtin_, {found, state_, admission_, dir_.path()});
    ASSERT_TRUE(started.ok()) << started.status();
    running_ = *std::move(started);
  }
  std::string StatePath() const {
    return sdk::StatePath({.resource = "cpu", .state_dir = dir_.path()});
  }
  StringMap ValuesAfterAChange() {
    EXPECT_TRUE(test::RunOn(state_, [&] { return state_.Remember({}); }).ok());
    return state_.Load()->plugin_values();
  }

  const test::TempDir dir_;
  const placement::AdmissionOptions admission_;
  test::Journal journal_;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  CountingPlugin* plugin_;
  BuiltinPlugin builtin_;
  std::unique_ptr<LocalPlugin> running_;
};

TEST_F(StartBuiltinTest, GivesThePluginItsRecordsAndWhatItKept) {
  checkpoint::Change recorded =
      test::Admit(test::SamplePod("web"), "main", {{"cpu", test::OwnCpus("4-5")}});
  recorded.put_plugin_values = {{"cpu", "6-7"}};
  Start(recorded);
  EXPECT_EQ(plugin_->held.at({"uid-web", "main"}), (CpuSet{4, 5}));
  EXPECT_EQ(plugin_->online, (CpuSet{6, 7}));
  EXPECT_FALSE(std::filesystem::exists(StatePath()));
}

TEST_F(StartBuiltinTest, TakesOverWhatAPluginProcessKeptAndMovesItsStateAside) {
  {
    const auto former = *sdk::OpenPluginState(StatePath());
    ASSERT_TRUE(former->Load().ok());
    const sdk::Grant stale{.request = test::CpuRequest("gone", "main", 1),
                           .allocation = sdk::PinCpus({0})};
    ASSERT_TRUE(former->Commit({.granted = {{stale.request.key, stale}}, .saved = "6-7"}).ok());
  }
  Start({});
  EXPECT_EQ(plugin_->online, (CpuSet{6, 7}));
  EXPECT_TRUE(plugin_->held.empty());
  EXPECT_FALSE(std::filesystem::exists(StatePath()));
  EXPECT_EQ(ValuesAfterAChange(), (StringMap{{"cpu", "6-7"}}));
}

TEST_F(StartBuiltinTest, PrefersWhatTheCheckpointHasToWhatAPluginProcessKept) {
  {
    const auto former = *sdk::OpenPluginState(StatePath());
    ASSERT_TRUE(former->Load().ok());
    ASSERT_TRUE(former->Commit({.saved = "0-1"}).ok());
  }
  checkpoint::Change recorded;
  recorded.put_plugin_values = {{"cpu", "6-7"}};
  Start(recorded);
  EXPECT_EQ(plugin_->online, (CpuSet{6, 7}));
}

}  // namespace
}  // namespace qrm::manager::start_builtin_test
