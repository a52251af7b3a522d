// A plugin registers with every manager that comes and goes, by either path.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "api/base/log.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/calls/registration_calls.h"
#include "plugins/sdk/fake_manager.h"
#include "plugins/sdk/host.h"
#include "plugins/sdk/plugin_client.h"
#include "plugins/sdk/running_plugin.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::registration_test {
namespace {

using test::Await;
using test::CountingPlugin;
using test::CpuRequest;
using testing::HasSubstr;

/// The time until a plugin must be registered with a new manager.
constexpr std::chrono::seconds kLimit{2};

enum class Path { kRegister, kWatched };

class RegistrationTest : public testing::TestWithParam<Path> {
 protected:
  std::unique_ptr<FakeManager> StartManager() {
    StatusOr<std::unique_ptr<FakeManager>> manager = FakeManager::Start(dir_.path());
    EXPECT_TRUE(manager.ok()) << manager.status();
    return *std::move(manager);
  }

  PluginSettings Settings() {
    PluginSettings settings{.resource = "cpu", .state_dir = dir_ / "state"};
    (GetParam() == Path::kRegister ? settings.registration_dir : settings.plugins_dir) =
        Directory();
    return settings;
  }

  std::unique_ptr<RunningPlugin> StartPlugin() {
    StatusOr<std::unique_ptr<RunningPlugin>> running = RunningPlugin::Start(Settings(), plugin_);
    EXPECT_TRUE(running.ok()) << running.status();
    return *std::move(running);
  }

  std::string Directory() const {
    return dir_ / (GetParam() == Path::kRegister ? "resource-plugins" : "plugins_registry");
  }
  std::string Socket() const { return Directory() + "/cpu.sock"; }

  test::TempDir dir_;
  CountingPlugin plugin_;
};

TEST_P(RegistrationTest, PluginRegistersAndAllocates) {
  const auto manager = StartManager();
  const auto plugin = StartPlugin();
  const StatusOr<RegisteredPlugin> known = manager->WaitForPlugin("cpu", 1, kLimit);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->socket, Socket());
  EXPECT_TRUE(known->options.with_topology_alignment);
  EXPECT_EQ(manager->Admit(CpuRequest("a", "main", 2))->value, "0-1");
}

TEST_P(RegistrationTest, PluginThatStartsFirstWaitsForTheManager) {
  const auto plugin = StartPlugin();
  const auto manager = StartManager();
  EXPECT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
}

TEST_P(RegistrationTest, RestartedManagerKnowsThePluginAgain) {
  auto manager = StartManager();
  const auto plugin = StartPlugin();
  ASSERT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
  ASSERT_TRUE(manager->Admit(CpuRequest("a", "main", 2)).ok());
  for (int restart = 0; restart < 3; ++restart) {
    manager.reset();
    manager = StartManager();
    ASSERT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
    EXPECT_EQ(manager->Reconcile("cpu")->at({"a", "main"}).value, "0-1");
  }
}

TEST_P(RegistrationTest, RestartedPluginHoldsItsAllocations) {
  const auto manager = StartManager();
  auto plugin = StartPlugin();
  ASSERT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
  ASSERT_TRUE(manager->Admit(CpuRequest("a", "main", 2)).ok());

  plugin.reset();
  plugin_.held.clear();
  plugin = StartPlugin();
  ASSERT_TRUE(manager->WaitForPlugin("cpu", 2, kLimit).ok());
  EXPECT_EQ(manager->Reconcile("cpu")->at({"a", "main"}).value, "0-1");
  EXPECT_EQ(manager->Admit(CpuRequest("b", "main", 2))->value, "2-3");
}

TEST_P(RegistrationTest, RemovedSocketIsMadeAgain) {
  const auto manager = StartManager();
  const auto plugin = StartPlugin();
  ASSERT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
  std::filesystem::remove(Socket());
  ASSERT_TRUE(manager->WaitForPlugin("cpu", 2, kLimit).ok());
  EXPECT_TRUE(manager->Admit(CpuRequest("a", "main", 1)).ok());
}

TEST_P(RegistrationTest, RecreatedDirectoryGetsTheSocketAgain) {
  auto manager = StartManager();
  const auto plugin = StartPlugin();
  ASSERT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
  manager.reset();
  std::filesystem::rename(Directory(), dir_ / "gone");
  manager = StartManager();
  EXPECT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
}

TEST_P(RegistrationTest, SecondPluginOfTheSameNameIsRejected) {
  const auto manager = StartManager();
  const auto plugin = StartPlugin();
  CountingPlugin other;
  PluginSettings settings = Settings();
  settings.state_dir = dir_ / "other";
  const auto refused = RunningPlugin::Start(settings, other);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
}

TEST_P(RegistrationTest, SocketOfAKilledPluginIsReplaced) {
  const auto manager = StartManager();
  {
    CountingPlugin killed;
    const auto host = PluginHost::Create(killed, "cpu", MakeMemoryState());
    ASSERT_TRUE((*host)->Listen(dir_ / "elsewhere.sock").ok());
    std::filesystem::rename(dir_ / "elsewhere.sock", Socket());
  }
  const auto plugin = StartPlugin();
  EXPECT_TRUE(manager->WaitForPlugin("cpu", 1, kLimit).ok());
}

INSTANTIATE_TEST_SUITE_P(Paths, RegistrationTest, testing::Values(Path::kRegister, Path::kWatched),
                         [](const auto& param_info) {
                           return param_info.param == Path::kRegister ? "Register" : "Watched";
                         });

/// Keeps the log lines during its lifetime.
class CapturedLog {
 public:
  CapturedLog() {
    log::SetSink([this](log::Level, const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    });
  }
  ~CapturedLog() { log::SetSink({}); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  bool Has(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        lines_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST(WatchedRegistrationTest, RejectionIsLoggedAndThePluginStays) {
  CapturedLog log;
  const test::TempDir dir;
  CountingPlugin plugin;
  const auto host = PluginHost::Create(plugin, "cpu", MakeMemoryState());
  ASSERT_TRUE((*host)->Listen(dir / "cpu.sock").ok());
  PluginClient client(dir / "cpu.sock");
  EXPECT_TRUE(client.Ask<calls::NotifyRegistrationStatus>("no handler for ResourcePlugin").ok());
  EXPECT_TRUE(log.Has("no handler for ResourcePlugin"));
  EXPECT_TRUE(client.Ask<calls::GetOptions>({}).ok());
}

TEST(RunningPluginTest, MissingDirectoryIsWaitedForAndNamedOnce) {
  CapturedLog log;
  const test::TempDir dir;
  CountingPlugin plugin;
  const auto running = RunningPlugin::Start(
      {.resource = "cpu", .plugins_dir = dir / "plugins_registry", .state_dir = dir / "state"},
      plugin);
  ASSERT_TRUE(running.ok());
  EXPECT_TRUE(Await([&] { return log.Has(": no directory "); }));
  std::filesystem::create_directory(dir / "plugins_registry");
  EXPECT_TRUE(Await([&] {
    return PluginClient(dir / "plugins_registry/cpu.sock").Ask<calls::GetOptions>({}).ok();
  }));
}

TEST(RunningPluginTest, RejectsSettingsThatMeanNothing) {
  CountingPlugin plugin;
  const auto code = [&](const PluginSettings& settings) {
    return RunningPlugin::Start(settings, plugin).status().code();
  };
  EXPECT_EQ(code({.resource = "cpu"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.resource = "cpu", .registration_dir = "/a", .plugins_dir = "/b"}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.resource = "c p u", .plugins_dir = "/b"}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.resource = "cpu", .plugins_dir = "/b", .socket_name = "../x"}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.resource = "cpu", .registration_dir = "/b", .socket_name = "kubelet.sock"}),
            StatusCode::kInvalidArgument);
}

TEST(RunningPluginTest, SocketAndStateOfAPrefixedResourceAreFiles) {
  const test::TempDir dir;
  const auto manager = FakeManager::Start(dir.path());
  CountingPlugin plugin;
  const auto running = RunningPlugin::Start({.resource = "example.com/widget",
                                             .registration_dir = (*manager)->registration_dir(),
                                             .state_dir = dir / "state"},
                                            plugin);
  ASSERT_TRUE(running.ok());
  const auto known = (*manager)->WaitForPlugin("example.com/widget");
  ASSERT_TRUE(known.ok());
  EXPECT_THAT(known->socket, HasSubstr("/example.com_widget.sock"));
  EXPECT_TRUE(std::filesystem::exists(dir / "state/example.com_widget_plugin.db"));
}

}  // namespace
}  // namespace qrm::sdk::registration_test
