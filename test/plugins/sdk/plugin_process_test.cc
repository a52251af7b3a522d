// A plugin as a process: killed at any moment, stopped, started with wrong flags.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "plugins/sdk/fake_manager.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/temp_dir.h"

namespace qrm::sdk::plugin_process_test {
namespace {

using test::Await;
using test::ChildProcess;
using test::CpuRequest;
using testing::HasSubstr;

/// The time until a killed plugin must be registered again after its start.
constexpr std::chrono::seconds kLimit{2};

TEST(ParseSettingsTest, TheValueOfAFlagMayBeEmpty) {
  std::string words[] = {"plugin", "--control-socket=", "--state-dir=/srv/qrm", "--socket-name",
                         ""};
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  const auto settings = ParseSettings("cpu", static_cast<int>(argv.size()), argv.data());
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->control_socket, "");
  EXPECT_EQ(settings->state_dir, "/srv/qrm");
  EXPECT_EQ(settings->socket_name, "");
}

class PluginProcessTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<FakeManager>> manager = FakeManager::Start(dir_.path());
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
  }

  std::string Directory() const {
    return GetParam() == "--registration-dir" ? manager_->registration_dir()
                                              : manager_->plugins_dir();
  }

  std::unique_ptr<ChildProcess> Start() {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{std::string(QRM_BIN) + "/test_counting_plugin", GetParam(),
                                 Directory(), "--state-dir", dir_ / "state"},
        dir_ / "plugin.log");
  }

  /// Admits pods one after another until one fails; acknowledged answers are in `acknowledged_`.
  void AdmitUntilItFails() {
    while (true) {
      const std::string pod = "pod" + std::to_string(next_pod_);
      const StatusOr<ResourceAllocation> given = manager_->Admit(CpuRequest(pod, "main", 1));
      if (!given.ok()) {
        return;
      }
      acknowledged_[{pod, "main"}] = given->value;
      ++next_pod_;
    }
  }

  test::TempDir dir_;
  std::unique_ptr<FakeManager> manager_;
  std::map<ContainerKey, std::string> acknowledged_;
  std::atomic<int> next_pod_ = 0;
};

TEST_P(PluginProcessTest, KilledAtAnyMomentLosesNoAcknowledgedAllocation) {
  constexpr int kKills = 5;
  std::mt19937 random(20261121);
  for (int kills = 0; kills < kKills; ++kills) {
    const auto plugin = Start();
    ASSERT_TRUE(manager_->WaitForPlugin("cpu", kills + 1, kLimit).ok()) << plugin->Output();

    const auto held = manager_->Reconcile("cpu");
    ASSERT_TRUE(held.ok()) << held.status();
    std::set<std::string> cpus;
    for (const auto& [key, allocation] : *held) {
      EXPECT_TRUE(cpus.insert(allocation.value).second) << allocation.value << " is given twice";
    }
    for (const auto& [key, value] : acknowledged_) {
      ASSERT_TRUE(held->contains(key)) << key.pod_uid;
      EXPECT_EQ(held->at(key).value, value);
    }

    const int enough = next_pod_ + 1 + static_cast<int>(random() % 8);
    std::thread admissions([&] { AdmitUntilItFails(); });
    ASSERT_TRUE(Await([&] { return next_pod_ >= enough; }));
    const auto moment =
        std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 10000);
    Await([&] { return std::chrono::steady_clock::now() >= moment; });
    plugin->Signal(SIGKILL);
    EXPECT_EQ(plugin->Wait(), -SIGKILL);
    admissions.join();
  }
}

TEST_P(PluginProcessTest, TerminatedLeavesNoSocket) {
  const auto plugin = Start();
  ASSERT_TRUE(manager_->WaitForPlugin("cpu").ok());
  plugin->Signal(SIGTERM);
  EXPECT_EQ(plugin->Wait(), 0) << plugin->Output();
  EXPECT_FALSE(std::filesystem::exists(Directory() + "/cpu.sock"));
}

TEST_P(PluginProcessTest, SecondProcessSaysWhyItEnds) {
  const auto plugin = Start();
  ASSERT_TRUE(manager_->WaitForPlugin("cpu").ok());
  const auto second = Start();
  EXPECT_EQ(second->Wait(), 1);
  EXPECT_THAT(second->Output(), HasSubstr("another process listens there; stop it"));
}

INSTANTIATE_TEST_SUITE_P(Paths, PluginProcessTest,
                         testing::Values("--registration-dir", "--plugins-registry-dir"),
                         [](const auto& param_info) {
                           return param_info.param == "--registration-dir" ? "Register" : "Watched";
                         });

class CommandLineTest : public testing::Test {
 protected:
  /// Exit code and output of the plugin with `arguments`.
  std::pair<int, std::string> Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), QRM_BIN "/test_counting_plugin");
    ChildProcess plugin(arguments, dir_ / "output");
    const int code = plugin.Wait();
    return {code, plugin.Output()};
  }

  test::TempDir dir_;
};

TEST_F(CommandLineTest, HelpExplainsEveryFlag) {
  const auto [code, output] = Run({"--help"});
  EXPECT_EQ(code, 0);
  for (const char* flag : {"--resource", "--registration-dir", "--plugins-registry-dir",
                           "--state-dir", "--socket-name", "--control-socket"}) {
    EXPECT_THAT(output, HasSubstr(flag));
  }
  EXPECT_THAT(output, HasSubstr("/var/lib/qrm/plugins_registry"));
}

TEST_F(CommandLineTest, UnknownFlagIsRejectedWithWhatToType) {
  const auto [code, output] = Run({"--colour", "red"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("--colour"));
  EXPECT_THAT(output, HasSubstr("--help"));
}

TEST_F(CommandLineTest, TwoDirectoriesAreRejected) {
  EXPECT_EQ(Run({"--registration-dir", "/a", "--plugins-registry-dir", "/b"}).first, 2);
}

}  // namespace
}  // namespace qrm::sdk::plugin_process_test
