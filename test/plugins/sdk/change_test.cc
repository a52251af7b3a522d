// A plugin whose allocations change notifies the manager at once.
#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "api/base/log.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/change_signal.h"
#include "plugins/sdk/fake_manager.h"
#include "plugins/sdk/plugin_client.h"
#include "plugins/sdk/registrar.h"
#include "plugins/sdk/running_plugin.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::change_test {
namespace {

using test::Await;

TEST(ChangeSignalTest, CallsNoListenerOnceItIsRemoved) {
  ChangeSignal signal;
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<bool> ended = false;
  signal.Connect([&] {
    entered.set_value();
    release.get_future().wait();
    ended = true;
  });
  std::thread raiser([&] { signal.Raise(); });
  entered.get_future().wait();
  std::thread releaser([&] { release.set_value(); });
  signal.Connect({});
  EXPECT_TRUE(ended) << "the call in progress was waited for";
  signal.Raise();
  raiser.join();
  releaser.join();
}

class ChangeTest : public testing::Test {
 protected:
  std::unique_ptr<FakeManager> StartManager() {
    StatusOr<std::unique_ptr<FakeManager>> manager = FakeManager::Start(dir_.path());
    EXPECT_TRUE(manager.ok()) << manager.status();
    return *std::move(manager);
  }
  std::unique_ptr<RunningPlugin> StartPlugin() {
    StatusOr<std::unique_ptr<RunningPlugin>> running =
        RunningPlugin::Start({.resource = "cpu",
                              .plugins_dir = dir_ / "plugins_registry",
                              .state_dir = dir_ / "state",
                              .control_socket = dir_ / "control.sock"},
                             plugin_);
    EXPECT_TRUE(running.ok()) << running.status();
    return *std::move(running);
  }

  test::TempDir dir_;
  test::CountingPlugin plugin_;
};

TEST_F(ChangeTest, PluginReportsPoolsThatAreSetByHand) {
  const auto manager = StartManager();
  const auto running = StartPlugin();
  const auto known = manager->WaitForPlugin("cpu");
  ASSERT_TRUE(known.ok()) << known.status();
  PluginClient somebody(known->socket);
  ASSERT_TRUE(somebody.Ask<calls::SetPools>({"cpu", {{"online", "1"}}}).ok());
  EXPECT_TRUE(Await([&] { return manager->notifications("cpu") == 1; }));
  EXPECT_FALSE(somebody.Ask<calls::SetPools>({"cpu", {{"unknown", "1"}}}).ok());
  EXPECT_EQ(manager->notifications("cpu"), 1) << "nothing changed";
}

TEST_F(ChangeTest, PluginReportsWhenItsAuthorAsksForIt) {
  const auto manager = StartManager();
  plugin_.NotifyChanged();  // not served yet: it is lost, and nothing breaks
  auto running = StartPlugin();
  plugin_.NotifyChanged();
  EXPECT_TRUE(Await([&] { return manager->notifications("cpu") == 1; }));
  running.reset();
  plugin_.NotifyChanged();
}

TEST_F(ChangeTest, ManyChangesLeadToFewCallsAndTheLastIsReported) {
  const auto manager = StartManager();
  ChangeNotifier notifier(manager->control_socket(), "cpu");
  for (int i = 0; i < 1000; ++i) {
    notifier.Notify();
  }
  ASSERT_TRUE(Await([&] { return manager->notifications("cpu") >= 1; }));
  const int before = manager->notifications("cpu");
  EXPECT_LT(before, 500);
  notifier.Notify();
  EXPECT_TRUE(Await([&] { return manager->notifications("cpu") > before; }));
}

TEST_F(ChangeTest, FindsAManagerThatStartsLater) {
  ChangeNotifier notifier(dir_ / "control.sock", "cpu");
  notifier.Notify();
  const auto manager = StartManager();
  EXPECT_TRUE(Await([&] {
    notifier.Notify();
    return manager->notifications("cpu") > 0;
  }));
}

TEST_F(ChangeTest, SaysOnceThatThereIsNoListenerAndContinues) {
  std::mutex mutex;
  std::vector<std::string> lines;
  log::SetSink([&](log::Level level, const std::string& line) {
    const std::lock_guard guard(mutex);
    if (level >= log::Level::kInfo &&
        line.find("cannot notify the manager of a change") != std::string::npos) {
      lines.push_back(line);
    }
  });
  {
    ChangeNotifier notifier(dir_ / "missing.sock", "cpu");
    for (int i = 0; i < 20; ++i) {
      notifier.Notify();
      ASSERT_TRUE(Await([&] {
        const std::lock_guard guard(mutex);
        return !lines.empty();
      }));
    }
  }
  log::SetSink({});
  EXPECT_EQ(lines.size(), 1u);
}

}  // namespace
}  // namespace qrm::sdk::change_test
